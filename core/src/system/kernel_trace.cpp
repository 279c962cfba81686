#include "system/kernel_trace.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "errors.hpp"
#include "system/descriptor.hpp"

namespace rtmeter {
namespace {

int open_file(const char* name, const char* field) {
  int error = ENOENT;
  for (const char* root : {"/sys/kernel/tracing/", "/sys/kernel/debug/tracing/"}) {
    const int fd = clear_of_standard(open((std::string(root) + name).c_str(), O_WRONLY | O_CLOEXEC));
    if (fd >= 0) return fd;
    if (errno != ENOENT) error = errno;
  }
  throw Failure(
      field, "true", std::string("cannot write ") + name + " of the kernel's trace: " + std::strerror(error),
      "mount tracefs on /sys/kernel/tracing and give this program the right to write there, or leave "
      "the flag out");
}

}  // namespace

KernelTrace::KernelTrace(bool mark, bool stop, const char* field) {
  if (mark) marker_ = open_file("trace_marker", field);
  try {
    if (stop) tracing_on_ = open_file("tracing_on", field);
  } catch (...) {
    if (marker_ >= 0) close(marker_);
    throw;
  }
}

KernelTrace::~KernelTrace() {
  if (marker_ >= 0) close(marker_);
  if (tracing_on_ >= 0) close(tracing_on_);
}

void KernelTrace::late(const char* what, std::int64_t k, std::int64_t release_ns,
                       std::int64_t stamp_ns) noexcept {
  if (marker_ >= 0 && !stopped_) {
    char text[160];
    const int length =
        std::snprintf(text, sizeof text, "rtmeter: %s: release %lld is late by %lld ns\n", what,
                      static_cast<long long>(k), static_cast<long long>(stamp_ns - release_ns));
    if (write(marker_, text, static_cast<std::size_t>(length)) < 0) errno = 0;  // stopping it says enough
  }
  if (tracing_on_ >= 0 && !stopped_) stopped_ = write(tracing_on_, "0", 1) == 1;
}

}  // namespace rtmeter
