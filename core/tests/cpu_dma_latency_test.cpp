#include "system/cpu_dma_latency.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdint>
#include <optional>

#include "child.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

constexpr const char* kPath = "/dev/cpu_dma_latency";

std::int32_t value_now_us() {
  const int fd = open(kPath, O_RDONLY | O_CLOEXEC);
  std::int32_t value_us = -1;
  if (fd < 0 || read(fd, &value_us, sizeof value_us) != sizeof value_us) value_us = -1;
  if (fd >= 0) close(fd);
  return value_us;
}

TEST(CpuDmaLatency, IsHeldAtZeroForItsLifetime) {
  if (access(kPath, R_OK | W_OK) != 0) GTEST_SKIP() << "needs permission to write " << kPath;
  const std::int32_t before_us = value_now_us();
  {
    const CpuDmaLatency held;
    EXPECT_EQ(value_now_us(), 0);
  }
  if (before_us == 0) GTEST_SKIP() << "something else holds it at 0: its release cannot be seen";
  EXPECT_GT(value_now_us(), 0);
}

TEST(CpuDmaLatency, NoPermissionNamesTheFileItsModeAndAUdevRule) {
  NEEDS_CAPABILITY(CAP_SETUID);
  if (access(kPath, F_OK) != 0) GTEST_SKIP() << "needs " << kPath;
  const std::string said = in_child([] {
    drop_privileges();
    return outcome_of([] { const CpuDmaLatency held; });
  });
  if (said == "ok") GTEST_SKIP() << "everybody may write " << kPath << " here";
  EXPECT_CONTAINS(said, "cpu_dma_latency = true: no permission: /dev/cpu_dma_latency has mode 0");
  EXPECT_CONTAINS(said, "the process runs as 65534:65534");
  EXPECT_CONTAINS(said, "KERNEL==\"cpu_dma_latency\"");
}

TEST(CpuDmaLatency, AMissingDeviceIsNamed) {
  NEEDS_CAPABILITY(CAP_SYS_ADMIN);
  const std::string said = in_child([] {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", "/dev", "tmpfs", 0, nullptr) != 0) {
      return std::string("skip");
    }
    return outcome_of([] { const CpuDmaLatency held; });
  });
  if (said == "skip") GTEST_SKIP() << "needs a mount namespace of its own";
  EXPECT_CONTAINS(said, "/dev/cpu_dma_latency does not exist");
  EXPECT_CONTAINS(said, "docker run --device");
}

}  // namespace
}  // namespace rtmeter
