// The kernel's trace, told of late releases: a marker, and its end.
#pragma once

#include <cstdint>

namespace rtmeter {

class KernelTrace {
 public:
  // Opens what it will write to. Throws Failure, naming the field that asked for it, if tracefs is not there
  // or may not be written.
  KernelTrace(bool mark, bool stop, const char* field);
  ~KernelTrace();
  KernelTrace(const KernelTrace&) = delete;
  KernelTrace& operator=(const KernelTrace&) = delete;

  // A system call for a marker, and one for the first late release that ends the trace.
  void late(const char* what, std::int64_t k, std::int64_t release_ns, std::int64_t stamp_ns) noexcept;
  bool stopped() const noexcept { return stopped_; }

 private:
  int marker_ = -1, tracing_on_ = -1;
  bool stopped_ = false;
};

}  // namespace rtmeter
