// Counts how often a SCHED_DEADLINE thread used up its runtime before its work was done. Setup and service
// threads only.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "system/service_thread.hpp"

namespace rtmeter {

// The kernel tells an overrun by SIGXCPU (see ask_for_overrun_signal). A service thread accepts the signals
// and counts them; several that come before it looks are one.
class DeadlineOverruns {
 public:
  // Blocks the signal in the calling thread, and so in the threads that it creates. Throws Failure.
  explicit DeadlineOverruns(const std::vector<int>& avoid_cpus);
  ~DeadlineOverruns();
  DeadlineOverruns(const DeadlineOverruns&) = delete;
  DeadlineOverruns& operator=(const DeadlineOverruns&) = delete;

  const std::atomic<std::int64_t>& count() const noexcept { return count_; }
  int tid() const noexcept { return thread_.tid(); }

 private:
  void accept() noexcept;

  std::atomic<std::int64_t> count_{0};
  std::atomic<bool> done_{false};
  ServiceThread thread_;
};

}  // namespace rtmeter
