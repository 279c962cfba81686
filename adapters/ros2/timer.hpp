// A wall timer of a node's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rcl/timer.h>
#include <rcutils/time.h>

#include <chrono>
#include <rclcpp/rclcpp.hpp>
#include <type_traits>

#include "rtmeter/adapter.hpp"

namespace rclcpp {
struct TimerInfo;  // which is defined by newer rclcpp only
}

namespace rtmeter_ros2 {

template <typename T, typename = void>
struct IsDefined : std::false_type {};
template <typename T>
struct IsDefined<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

// Whether rclcpp tells when a call was expected.
constexpr bool kTellsExpected = IsDefined<rclcpp::TimerInfo>::value;

// Periodic, or a one-shot: periodic too, but cancelled by its first call and reset by arm().
class Timer {
  // First, since its type is that of what it returns.
  template <typename Info>
  auto callback() {
    if constexpr (kTellsExpected)
      return [this](const Info& info) {
        fire({info.expected_call_time.nanoseconds(), info.actual_call_time.nanoseconds()});
      };
    else
      return [this](rclcpp::TimerBase& timer) { fire({RTM_ABSENT, called_at(timer)}); };
  }

 public:
  Timer(rclcpp::Node& node, const rclcpp::CallbackGroup::SharedPtr& group, const rtm_timer_spec& spec)
      : spec_(spec) {
    const std::chrono::nanoseconds period(spec.period_ns);
    timer_ = node.create_wall_timer(period, callback<rclcpp::TimerInfo>(), group);
    timer_->cancel();  // until it is armed
  }

  void arm() { timer_->reset(); }

 private:
  void fire(const rtm_fire& fire) {
    spec_.on_fire(spec_.user, &fire);
    if (spec_.mode == RTM_ONE_SHOT) timer_->cancel();
  }

  // When the executor called the timer, which older rclcpp tells as a time that has passed since. It has to
  // be asked before the stamp, and costs two readings of the clock.
  static std::int64_t called_at(rclcpp::TimerBase& timer) {
    rcutils_time_point_value_t since_ns = 0, now_ns = 0;
    if (rcl_timer_get_time_since_last_call(timer.get_timer_handle().get(), &since_ns) != RCL_RET_OK ||
        rcutils_steady_time_now(&now_ns) != RCUTILS_RET_OK)
      return RTM_ABSENT;
    return now_ns - since_ns;
  }

  const rtm_timer_spec spec_;
  rclcpp::TimerBase::SharedPtr timer_;
};

}  // namespace rtmeter_ros2
