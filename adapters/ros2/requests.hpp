// rclcpp's services and actions, as the measurements need them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <string>

#include "../common/ros/rmw.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_ros2 {

// Who asks.
class Client {
 public:
  virtual ~Client() = default;
  virtual void call(const rtm_message& request) = 0;  // measured path; may throw
  virtual rtmeter_common::EndFacts facts() const = 0;
};

// Who answers.
class Server {
 public:
  virtual ~Server() = default;
  virtual void reply(rtm_reply what, const rtm_message& message) = 0;  // measured path; may throw
  virtual rtmeter_common::EndFacts facts() const = 0;
};

// Where an end is made, and for whom.
struct Place {
  rclcpp::Node::SharedPtr node;
  rclcpp::CallbackGroup::SharedPtr group;  // null: the node's own
  const rtm_run& run;
  std::string name;  // of the service or action, as the core has it
};

// Of a service, or of an action where the run asks for one.
std::unique_ptr<Client> make_client(const Place& at, rtm_on_reply on_reply, void* user);
std::unique_ptr<Server> make_server(const Place& at, rtm_on_message on_request, void* user);

// Only where there is an rclcpp_action.
std::unique_ptr<Client> make_action_client(const Place& at, rtm_on_reply on_reply, void* user);
std::unique_ptr<Server> make_action_server(const Place& at, rtm_on_message on_request, void* user);

// Requests, responses, goals and results are a number and bytes alike.
template <typename T>
void set(T& body, const rtm_message& from) {
  body.sequence = from.sequence;
  body.payload.assign(from.data, from.data + from.bytes);
}
template <typename T>
rtm_message view(const T& body) {
  return {body.sequence, body.payload.data(), static_cast<std::uint32_t>(body.payload.size())};
}

}  // namespace rtmeter_ros2
