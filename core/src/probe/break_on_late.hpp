// Ends the run at its first late release, and the kernel's trace before that: what cyclictest calls
// breaktrace. The writer thread's, which sees a row at the latest some 50 ms after it was recorded.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "measure/measurement.hpp"
#include "probe/doubts.hpp"
#include "system/kernel_trace.hpp"

namespace rtmeter {

class BreakOnLate {
 public:
  // Throws Failure if the kernel's trace cannot be written.
  BreakOnLate(const Config& config, Judged judged, std::size_t columns, std::atomic<bool>& stop)
      : judged_(judged), columns_(columns), deadline_ns_(*config.deadline_ns), stop_(stop),
        trace_(true, true, "break_on_late") {}

  void see(const std::int64_t* rows, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count && broke_at_ < 0; ++i, ++k_, rows += columns_) {
      const std::int64_t code = rows[columns_ - 1], outcome = code & 15;
      if ((code & kWarmUpFlag) != 0 || outcome == kInFlight) continue;
      const bool served = outcome == kServed;
      const std::int64_t release_ns = rows[judged_.earlier] + judged_.minus_ns;
      if (served && rows[judged_.later] - release_ns <= deadline_ns_) continue;
      broke_at_ = k_;
      // One that was skipped or lost has no stamp: at least so late it is.
      trace_.late("probe", k_, release_ns, served ? rows[judged_.later] : release_ns + deadline_ns_);
      stop_.store(true);
    }
  }

  // That it broke, once the writer has ended.
  std::optional<Json> doubt() const {
    if (broke_at_ < 0) return std::nullopt;
    return rtmeter::doubt(
        "broke_on_late",
        "release " + std::to_string(broke_at_) + " missed the deadline: the kernel's trace was " +
            (trace_.stopped() ? "stopped" : "not stopped, the kernel refused") + ", and the run ended",
        "look at the trace in /sys/kernel/tracing/trace; its marker names the release");
  }

 private:
  const Judged judged_;
  const std::size_t columns_;
  const std::int64_t deadline_ns_;
  std::atomic<bool>& stop_;
  KernelTrace trace_;
  std::int64_t k_ = 0, broke_at_ = -1;
};

}  // namespace rtmeter
