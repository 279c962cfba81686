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
      : judged_(judged), columns_(columns), deadline_ns_(*config.deadline_ns),
        later_serves_(config.has_two_ends()), stop_(stop), trace_(true, true, "break_on_late") {}

  void see(const std::int64_t* rows, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count && broke_at_ < 0; ++i, ++k_, rows += columns_) {
      const std::int64_t code = rows[columns_ - 1], outcome = code & 15;
      if ((code & kWarmUpFlag) != 0 || outcome == kInFlight) continue;
      const bool served = outcome == kServed;
      if (!waits_) {
        waits_ = true;
        first_k_ = k_;
        first_ns_ = rows[judged_.earlier] + judged_.minus_ns;
      }
      if (outcome == kSkipped && later_serves_) continue;  // by the answer to the next
      waits_ = false;
      if (served && rows[judged_.later] - first_ns_ <= deadline_ns_) continue;
      broke_at_ = first_k_;
      // One that was skipped or lost has no stamp: at least so late it is.
      trace_.late("probe", first_k_, first_ns_, served ? rows[judged_.later] : first_ns_ + deadline_ns_);
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
  const bool later_serves_;  // round trips and requests: what was skipped counts to the next answer
  std::atomic<bool>& stop_;
  KernelTrace trace_;
  std::int64_t k_ = 0, broke_at_ = -1;
  bool waits_ = false;  // the first of those that the next answer serves:
  std::int64_t first_k_ = 0, first_ns_ = 0;
};

}  // namespace rtmeter
