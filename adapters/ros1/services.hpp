// roscpp's client and server of a service, as the measurements need them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ros/ros.h>
#include <ros/service_manager.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "message.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_ros1 {

class Client {
 public:
  Client(ros::NodeHandle& node, const std::string& service, bool persistent, rtm_on_reply on_reply,
         void* user)
      : node_(node), service_(service), persistent_(persistent), on_reply_(on_reply), user_(user) {
    connect();
  }

  const std::string& service() const { return service_; }

  // Blocks as roscpp's calls do; false if there was no response. One that kept a connection that has ended
  // connects anew before the run only.
  bool call(const rtm_message& request) {
    if (request.sequence == RTM_SEQUENCE_HELLO && !port_.isValid()) connect();
    request_.number = request.sequence;
    request_.payload.assign(request.data, request.data + request.bytes);
    calling_.store(true);
    const bool answered = port_.isValid() && port_.call(request_, response_);
    calling_.store(false);
    if (!answered) return false;
    const rtm_message message{response_.number, response_.payload.data(),
                              static_cast<std::uint32_t>(response_.payload.size())};
    on_reply_(user_, RTM_RESULT, &message);
    return true;
  }

  // Ends the call under way, which roscpp waits for without a limit: only what closes all connections of
  // services reaches one that is kept for a single call.
  void give_up() const {
    if (calling_.load()) ros::ServiceManager::instance()->shutdown();
  }

 private:
  void connect() { port_ = node_.serviceClient<Message, Message>(service_, persistent_); }

  ros::NodeHandle& node_;
  const std::string service_;
  const bool persistent_;
  const rtm_on_reply on_reply_;
  void* const user_;
  ros::ServiceClient port_;
  Message request_, response_;
  std::atomic<bool> calling_{false};
};

class Server {
 public:
  Server(ros::NodeHandle& node, const std::string& service, rtm_on_message on_request, void* user)
      : on_request_(on_request), user_(user),
        port_(node.advertiseService<Message, Message>(
            service, boost::function<bool(Message&, Message&)>(
                         [this](Message& asked, Message& response) { return answer(asked, response); }))) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // From within on_request.
  void reply(const rtm_message& message) {
    response_->number = message.sequence;
    response_->payload.assign(message.data, message.data + message.bytes);
  }

 private:
  bool answer(Message& asked, Message& response) {
    response_ = &response;
    const rtm_message message{asked.number, asked.payload.data(),
                              static_cast<std::uint32_t>(asked.payload.size())};
    on_request_(user_, &message);
    return true;
  }

  const rtm_on_message on_request_;
  void* const user_;
  Message* response_ = nullptr;  // of the request that is answered
  ros::ServiceServer port_;
};

}  // namespace rtmeter_ros1
