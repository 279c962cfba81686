// The posix adapter: what a careful engineer would write with system calls, the floor that every
// middleware is compared with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "loop.hpp"
#include "messaging.hpp"
#include "rtmeter/adapter.hpp"
#include "streams.hpp"
#include "timer.hpp"

namespace rtmeter_posix {

class Posix final : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink);
  explicit Posix(const rtm_run& run);

  void describe(rtmeter::Sink& sink) const override;
  void* create_node(const std::string& name) override;
  void* create_timer(void* node, const rtm_timer_spec& spec, rtm_timer_traits& traits) override;
  void* create_publisher(void* node, const std::string& topic) override;
  void* create_subscriber(void* node, const std::string& topic, rtm_on_message on_message,
                          void* user) override;
  void* create_client(void* node, const std::string& service, rtm_on_reply on_reply, void* user) override;
  void* create_server(void* node, const std::string& service, rtm_on_message on_request, void* user) override;

  void watch(void* /*node*/, rtm_on_match on_match, void* user) override {
    messaging_->watch(on_match, user);
  }

  void tell_stamps(void* /*node*/, rtm_on_stamp on_stamp, void* user) override {
    messaging_->tell_stamps(on_stamp, user);
  }

  int arm(void* timer, std::int64_t now_ns) noexcept override {
    return static_cast<Timer*>(timer)->arm(now_ns);
  }
  int publish(void* publisher, const rtm_message& message) noexcept override {
    return messaging_->publish(publisher, message);
  }
  int call(void* /*client*/, const rtm_message& request) noexcept override { return stream_->send(request); }
  int reply(void* /*server*/, rtm_reply /*what*/, const rtm_message& message) noexcept override {
    return stream_->send(message);
  }
  int spin(std::int64_t timeout_ns) noexcept override {
    return loop_ == nullptr ? -1 : loop_->spin(timeout_ns);
  }
  int wait(std::int64_t timeout_ns) noexcept override {
    return loop_ == nullptr ? -1 : loop_->wait(timeout_ns);
  }
  int spin_some() noexcept override { return loop_ == nullptr ? -1 : loop_->spin_some(); }
  void interrupt() noexcept override {
    if (loop_ != nullptr) loop_->interrupt();
  }

 private:
  std::pair<std::string, std::string> in_effect_;  // option timer, transport or stream, and its value
  rtm_overrun overrun_;
  std::unique_ptr<Timer> timer_;
  bool has_timer_ = false;  // the core has it
  std::unique_ptr<Messaging> messaging_;
  std::unique_ptr<Stream> stream_;  // of requests
  Loop* loop_ = nullptr;  // of the timer, the messaging or the stream; a wake-up needs none
};

}  // namespace rtmeter_posix
