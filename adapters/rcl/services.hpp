// The ends of rcl's services, and of rcl_action's actions, as the measurements need them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rcl/rcl.h>

#include <memory>
#include <string>

#include "../common/ros/rmw.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_rcl {

// How much room in a wait set an end takes.
struct Room {
  std::size_t subscriptions = 0, guard_conditions = 0, timers = 0, clients = 0, services = 0;
};

// Who asks, or who answers.
class RequestEnd {
 public:
  virtual ~RequestEnd() = default;
  virtual Room room() const = 0;
  virtual rtmeter_common::EndFacts facts() const = 0;

  // Measured path.
  virtual rcl_ret_t add_to(rcl_wait_set_t& wait_set) noexcept = 0;
  virtual void take(const rcl_wait_set_t& ready) noexcept = 0;  // of what is ready one each, as executors do
  virtual int call(const rtm_message& /*request*/) noexcept { return -1; }
  virtual int reply(rtm_reply /*what*/, const rtm_message& /*message*/) noexcept { return -1; }
};

// Where an end is made, and for whom.
struct Place {
  rcl_node_t* node;
  rcl_clock_t* clock;
  const rtm_run& run;
  std::string name;  // of the service or action, as the core has it
};

// Of a service, or of an action where the run asks for one.
std::unique_ptr<RequestEnd> make_client(const Place& at, rtm_on_reply on_reply, void* user);
std::unique_ptr<RequestEnd> make_server(const Place& at, rtm_on_message on_request, void* user);

// Only where there is an rcl_action.
std::unique_ptr<RequestEnd> make_action_client(const Place& at, rtm_on_reply on_reply, void* user);
std::unique_ptr<RequestEnd> make_action_server(const Place& at, rtm_on_message on_request, void* user);

}  // namespace rtmeter_rcl
