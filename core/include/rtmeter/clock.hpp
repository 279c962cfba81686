// The clock of a measurement: a parameter, so that the same code runs on real and on scripted time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace rtmeter {

class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds. Measured path.
  virtual std::int64_t now_ns() noexcept = 0;
  // Returns at or after at_ns, at once if it has passed, earlier only when the run is stopped.
  // Measured path: the one call that waits.
  virtual void sleep_until_ns(std::int64_t at_ns) noexcept = 0;
  // Sleeps to a release if it lies ahead, makes no system call if it has passed; the time afterwards.
  // Measured path.
  virtual std::int64_t reach_ns(std::int64_t release_ns) noexcept = 0;
  // True if no real time passes: the producer waits for a full ring, no watchdog, nothing in parallel.
  virtual bool scripted() const noexcept = 0;
  // Release 0 of a grid that starts now.
  virtual std::int64_t first_release_ns(std::int64_t period_ns) noexcept = 0;
};

// CLOCK_MONOTONIC.
class MonotonicClock final : public Clock {
 public:
  // A signal ends a sleep early only once `stop` is set.
  explicit MonotonicClock(const std::atomic<bool>& stop) : stop_(stop) {}

  std::int64_t now_ns() noexcept override {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
  }
  void sleep_until_ns(std::int64_t at_ns) noexcept override {
    const timespec t{static_cast<time_t>(at_ns / 1'000'000'000), static_cast<long>(at_ns % 1'000'000'000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR &&
           !stop_.load(std::memory_order_relaxed)) {
    }
  }
  // In one piece, without a virtual call: what is fetched between the sleep and the stamp is in the latency.
  std::int64_t reach_ns(std::int64_t release_ns) noexcept override {
    if (const std::int64_t here_ns = now_ns(); here_ns >= release_ns) return here_ns;
    sleep_until_ns(release_ns);
    return now_ns();
  }
  bool scripted() const noexcept override { return false; }
  std::int64_t first_release_ns(std::int64_t period_ns) noexcept override {
    constexpr std::int64_t kLead = 10'000'000;  // time to reach the loop
    return now_ns() + (period_ns > kLead ? period_ns : kLead);
  }

 private:
  const std::atomic<bool>& stop_;
};

}  // namespace rtmeter
