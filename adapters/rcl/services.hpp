// rcl's clients and services, as the measurements need them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rcl/rcl.h>
#include <rtmeter_msgs/srv/call.h>

#include <string>

#include "entities.hpp"

namespace rtmeter_rcl {

// A request or a response, with room for a payload.
template <typename T>
class Body {
 public:
  explicit Body(std::uint32_t payload_bytes);
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  ~Body();
  T* get() { return &body_; }
  rtm_message view() const;
  void set(const rtm_message& message) noexcept;  // no more bytes than there is room for

 private:
  T body_{};
};
using Request = Body<rtmeter_msgs__srv__Call_Request>;
using Response = Body<rtmeter_msgs__srv__Call_Response>;

// The quality of service is that of ROS 2's services.
class Client {
 public:
  Client(rcl_node_t* node, const rtm_run& run, const std::string& service, rtm_on_reply on_reply, void* user);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();
  const rcl_client_t* get() const { return &handle_; }
  int call(const rtm_message& request) noexcept;
  void take() noexcept;  // one response, as executors do after each wait
  rtmeter_common::EndFacts facts() const;

 private:
  const std::string name_;
  rcl_node_t* const node_;
  rcl_client_t handle_ = rcl_get_zero_initialized_client();
  Request request_;    // who sends and who takes may be two threads
  Response response_;
  const rtm_on_reply on_reply_;
  void* const user_;
};

class Service {
 public:
  Service(rcl_node_t* node, const rtm_run& run, const std::string& service, rtm_on_message on_request,
          void* user);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service();
  const rcl_service_t* get() const { return &handle_; }
  void take() noexcept;
  int reply(const rtm_message& message) noexcept;  // to the request that was taken last
  rtmeter_common::EndFacts facts() const;

 private:
  const std::string name_;
  rcl_node_t* const node_;
  rcl_service_t handle_ = rcl_get_zero_initialized_service();
  Request request_;
  Response response_;
  rmw_request_id_t asked_{};
  const rtm_on_message on_request_;
  void* const user_;
};

}  // namespace rtmeter_rcl
