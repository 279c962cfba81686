// The options of the ROS 2 adapter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../common/ros/rmw.hpp"
#include "executors.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_ros2 {

// Whether TLSF it is. Without tlsf_cpp tlsf_or_std is std, and tlsf is refused.
inline std::vector<std::pair<std::string, bool>> allocators() {
#ifdef RTMETER_ROS2_TLSF
  return {{"std", false}, {"tlsf", true}, {"tlsf_or_std", true}};
#else
  return {{"std", false}, {"tlsf_or_std", false}};
#endif
}

struct Options : rtmeter_ros::OptionSet {
  rtmeter::Choice executor{*this, "executor", executor_names(),
                           "the executor that the measured thread spins"};
  rtmeter::Number executor_threads{*this, "executor_threads", 1, 1024,
                                   "of an executor that has several; by default as many as it takes"};
  rtmeter::Choice spin{
      *this,
      "spin",
      {"spin", "spin_once", "spin_some", "spin_all"},
      "the executor's call; of periodic timers the first two with drive spin; of timers with other drives and "
      "where messages are polled spin_some (default), spin_all and spin_once. Of messages that are not polled "
      "receive says it"};
  rtmeter::ChoiceOf<bool> own_group{
      *this,
      "callback_group",
      {{"node", false}, {"own", true}},
      "the measured callbacks in the node's group, or in one of their own with an executor and a thread to "
      "themselves; thread ros2-background then serves everything else. In a cycle they are those of both components, "
      "or with two_threads those of the first"};
  rtmeter::ChoiceOf<bool> bare_node{*this,
                                    "node",
                                    {{"default", false}, {"bare", true}},
                                    "bare has no parameter services, parameter events and rosout"};
  rtmeter::ChoiceOf<bool> inline_server{
      *this,
      "server",
      {{"process", false}, {"inline", true}},
      "the server of a round trip in a process of its own, or as a node of the client's process, on thread "
      "ros2-background"};
  rtmeter::Flag intra_process{*this, "intra_process",
                              "rclcpp hands messages over between nodes of one process"};
  rtmeter::Flag loan{*this, "loan", "publish in memory that the middleware lends (see the adapter's page)"};
  rtmeter::ChoiceOf<bool> tlsf{
      *this, "allocator", allocators(),
      "of publishers, subscriptions and the executor, and of messages but for the bytes of their payloads; tlsf "
      "takes the same time each time"};
};

inline const Options kOptions;

}  // namespace rtmeter_ros2
