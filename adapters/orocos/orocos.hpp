// The OROCOS adapter, over the Real-Time Toolkit (RTT): components with activities and ports.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <rtt/ConnPolicy.hpp>
#include <string>
#include <vector>

#include "activities.hpp"
#include "component.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_orocos {

// RTT, while it lives.
struct Runtime {
  Runtime();
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
};

class Orocos : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink);
  explicit Orocos(const rtm_run& run);
  ~Orocos() override;

  void describe(rtmeter::Sink& sink) const override;
  void* create_node(const std::string& name) override;
  void* create_timer(void* node, const rtm_timer_spec& spec, rtm_timer_traits& traits) override;
  void* create_publisher(void* node, const std::string& topic) override;
  void* create_subscriber(void* node, const std::string& topic, rtm_on_message on_message,
                          void* user) override;

  int arm(void* timer, std::int64_t now_ns) override;
  int publish(void* publisher, const rtm_message& message) override;
  int spin(std::int64_t timeout_ns) override;
  int wait(std::int64_t timeout_ns) override;
  int spin_some() override;
  void interrupt() override;

 private:
  struct Publisher {
    std::string topic;
    RTT::OutputPort<Message>& port;
    Message next;
  };

  RTT::ConnPolicy checked_policy() const;
  bool timer_starts() const { return run_.drive == RTM_SPIN && run_.measurement != RTM_WAKEUP; }
  RTT::base::ActivityInterface* activity_for(Component* component, const std::string& thread);
  Message sample() const;
  int result() const noexcept { return signals_.broken.load() ? RTM_BROKEN : 0; }

  const rtm_run run_;
  std::string activity_;             // of what is timed
  bool relative_ = false;            // its wait
  bool one_thread_ = false;          // b runs in the activity of a, right after its hook
  RTT::ConnPolicy policy_;
  std::vector<std::string> connections_;
  Activities activities_;
  Runtime runtime_;
  Signals signals_;
  std::deque<std::unique_ptr<Component>> components_;
  std::vector<Component*> own_;  // those that the measured thread executes
  std::deque<Publisher> publishers_;
  std::uint32_t heard_ = 0;  // ticket of signals_.called that was served
};

}  // namespace rtmeter_orocos
