// What ends a spin from outside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rcl/wait.h>

#include <functional>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <utility>

namespace rtmeter_ros2 {

// A guard condition that an executor serves by calling on_wake. Unlike Executor::cancel(), which does nothing
// to a spin that is about to begin, it stays set until it is served. Each virtual function is here as older
// rclcpp calls it, by pointer, and as newer does, by reference.
class Wake final : public rclcpp::Waitable {
 public:
  Wake(const rclcpp::Context::SharedPtr& context, std::function<void()> on_wake)
      : guard_(context), on_wake_(std::move(on_wake)) {}

  // From any thread.
  void ring() { guard_.trigger(); }

  std::size_t get_number_of_ready_guard_conditions() { return 1; }
  void add_to_wait_set(rcl_wait_set_t& set) {
    if (rcl_wait_set_add_guard_condition(&set, &guard_.get_rcl_guard_condition(), nullptr) != RCL_RET_OK)
      rclcpp::exceptions::throw_from_rcl_error(RCL_RET_ERROR, "the wait set has no room");
  }
  void add_to_wait_set(rcl_wait_set_t* set) { add_to_wait_set(*set); }
  bool is_ready(const rcl_wait_set_t& set) {
    for (std::size_t i = 0; i < set.size_of_guard_conditions; ++i)
      if (set.guard_conditions[i] == &guard_.get_rcl_guard_condition()) return true;
    return false;
  }
  bool is_ready(rcl_wait_set_t* set) { return is_ready(std::as_const(*set)); }
  std::shared_ptr<void> take_data() { return nullptr; }
  std::shared_ptr<void> take_data_by_entity_id(std::size_t /*id*/) { return nullptr; }
  void execute(const std::shared_ptr<void>& /*data*/) { on_wake_(); }
  void execute(std::shared_ptr<void>& /*data*/) { on_wake_(); }

  // Executors that are told of events instead of waiting for them.
  void set_on_ready_callback(std::function<void(std::size_t, int)> callback) {
    guard_.set_on_trigger_callback([callback](std::size_t times) { callback(times, 0); });
  }
  void clear_on_ready_callback() { guard_.set_on_trigger_callback(nullptr); }
  std::vector<std::shared_ptr<rclcpp::TimerBase>> get_timers() const { return {}; }

 private:
  rclcpp::GuardCondition guard_;
  const std::function<void()> on_wake_;
};

}  // namespace rtmeter_ros2
