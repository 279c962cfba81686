// rcl's publishers, subscriptions and timers, as the measurements need them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rcl/rcl.h>
#include <rtmeter_msgs/msg/message.h>

#include <string>

#include "../common/ros/rmw.hpp"
#include "bodies.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_rcl {

inline const rtmeter_ros::OptionSet kOptions;

// Throws SetupError with rcl's words if a call of the setup failed.
void check(rcl_ret_t result, const std::string& what);

using Message = RTMETER_OWNED(rtmeter_msgs__msg__Message);

// Tells of the matches of an end, where rcl does.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();
  void of(rcl_publisher_t* publisher, rtm_on_match on_match, void* user);
  void of(rcl_subscription_t* subscription, rtm_on_match on_match, void* user);
  const rcl_event_t* get() const { return &event_; }
  void take() noexcept;

 private:
  rcl_event_t event_ = rcl_get_zero_initialized_event();
  rtm_end end_ = RTM_PUBLISHER;
  rtm_on_match on_match_ = nullptr;
  void* user_ = nullptr;
};

class Publisher {
 public:
  Publisher(rcl_node_t* node, const rtm_run& run, const std::string& topic);
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  ~Publisher();
  rcl_publisher_t* get() { return &handle_; }
  int publish(const rtm_message& message) noexcept;
  rtmeter_common::EndFacts facts() const;

 private:
  const std::string name_;
  rcl_node_t* const node_;
  rcl_publisher_t handle_ = rcl_get_zero_initialized_publisher();
  rcl_event_t refused_ = rcl_get_zero_initialized_event();
  Message message_;
};

class Subscription {
 public:
  Subscription(rcl_node_t* node, const rtm_run& run, const std::string& topic, rtm_on_message on_message,
               void* user);
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  ~Subscription();
  const rcl_subscription_t* get() const { return &handle_; }
  rcl_subscription_t* get() { return &handle_; }
  void take() noexcept;  // one message, as executors do after each wait
  rtmeter_common::EndFacts facts() const;

 private:
  const std::string name_;
  rcl_node_t* const node_;
  rcl_subscription_t handle_ = rcl_get_zero_initialized_subscription();
  rcl_event_t refused_ = rcl_get_zero_initialized_event();
  Message message_;
  const rtm_on_message on_message_;
  void* const user_;
};

class Timer {
 public:
  Timer(rcl_clock_t* clock, rcl_context_t* context, const rtm_timer_spec& spec);
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer();
  const rcl_timer_t* get() const { return &handle_; }
  int arm() noexcept;
  void call() noexcept;

 private:
  const rtm_timer_spec spec_;
  rcl_timer_t handle_ = rcl_get_zero_initialized_timer();
};

}  // namespace rtmeter_rcl
