// roscpp's three timers as one.
#pragma once

#include <ros/ros.h>

#include <algorithm>
#include <cstdint>

namespace rtmeter_ros1 {

template <typename Duration>
Duration duration(std::int64_t ns) {
  constexpr std::int64_t kSecond = 1000000000, kLongest = 100000 * kSecond;
  ns = std::min(ns, kLongest);
  return Duration(static_cast<std::int32_t>(ns / kSecond), static_cast<std::int32_t>(ns % kSecond));
}

struct Timer {
  virtual ~Timer() = default;
  virtual void arm() = 0;
};

// One of roscpp's three timers.
template <typename RosTimer, typename Duration>
class TimerOf final : public Timer {
 public:
  // renew: a one-shot is stopped and started. setPeriod() re-arms one at less cost, but only once its
  // callback has returned, which is not known where another thread calls back.
  TimerOf(RosTimer timer, const rtm_timer_spec& spec, bool renew)
      : timer_(timer), period_(duration<Duration>(spec.period_ns)), renew_(renew) {}

  void arm() override {
    if (armed_ && renew_) timer_.stop();
    if (armed_ && !renew_) return timer_.setPeriod(period_, true);
    timer_.start();
    armed_ = true;
  }

 private:
  RosTimer timer_;
  const Duration period_;
  const bool renew_;
  bool armed_ = false;
};

}  // namespace rtmeter_ros1
