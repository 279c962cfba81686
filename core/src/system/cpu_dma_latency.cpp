// Documentation/power/pm_qos_interface.rst: the request holds while the file is open.
#include "system/cpu_dma_latency.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "system/explain.hpp"

namespace rtmeter {
namespace {

constexpr const char* kPath = "/dev/cpu_dma_latency";
constexpr const char* kField = "cpu_dma_latency";

Failure explain_open(int error) {
  if (error == ENOENT) {
    return Failure(kField, "true", std::string(kPath) + " does not exist",
                   "use a kernel that has power management (CONFIG_CPU_IDLE), in a container "
                   "`docker run --device /dev/cpu_dma_latency`, or leave the setting out");
  }
  struct stat status{};
  if ((error != EACCES && error != EPERM) || stat(kPath, &status) != 0) {
    return system_failure(kField, "true", std::string("open ") + kPath, error);
  }
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(status.st_mode & 07777));
  return Failure(kField, "true",
                 std::string("no permission: ") + kPath + " has mode " + mode + ", owner " +
                     std::to_string(status.st_uid) + ":" + std::to_string(status.st_gid) +
                     "; the process runs as " + std::to_string(geteuid()) + ":" + std::to_string(getegid()),
                 "`sudo chmod o+rw /dev/cpu_dma_latency`, or for good a udev rule: "
                 R"(KERNEL=="cpu_dma_latency", GROUP="realtime", MODE="0660")");
}

}  // namespace

CpuDmaLatency::CpuDmaLatency() : fd_(open(kPath, O_RDWR | O_CLOEXEC)) {
  if (fd_ < 0) throw explain_open(errno);
  const std::int32_t wanted_us = 0;
  std::int32_t got_us = -1;
  if (write(fd_, &wanted_us, sizeof wanted_us) != sizeof wanted_us ||
      pread(fd_, &got_us, sizeof got_us, 0) != sizeof got_us) {
    const int error = errno;
    close(fd_);
    throw system_failure(kField, "true", std::string("writing ") + kPath, error);
  }
  if (got_us != wanted_us) {
    close(fd_);
    throw Failure(kField, "true", std::string(kPath) + " reads back " + std::to_string(got_us) + " us, not 0",
                  "report this with `uname -a`: the setting did not take");
  }
}

CpuDmaLatency::~CpuDmaLatency() { close(fd_); }

}  // namespace rtmeter
