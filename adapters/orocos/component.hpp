// A component: an RTT TaskContext that calls the core back from its hooks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <rtt/InputPort.hpp>
#include <rtt/OutputPort.hpp>
#include <rtt/TaskContext.hpp>
#include <string>
#include <vector>

#include "rtmeter/adapter.hpp"
#include "rtmeter/event_count.hpp"

namespace rtmeter_orocos {

struct Message {
  std::uint64_t number = 0;
  std::vector<std::uint8_t> payload;
};

// What components and the measured thread tell each other.
struct Signals {
  rtmeter::ThreadEventCount called{};  // notified when something is to be done or was done
  rtmeter::ThreadEventCount ended{};   // notified when spin() shall return
  std::atomic<bool> interrupted{false}, broken{false};
  std::atomic_flag breaking = ATOMIC_FLAG_INIT;  // somebody writes why
  std::string why_broken;                        // written before broken is set
  bool tells_of_messages = true;  // the measured thread waits for messages, and executes nothing

  void end() noexcept {
    called.notify();
    ended.notify();
  }
};

class Component final : public RTT::TaskContext {
 public:
  Component(const std::string& name, Signals& signals) : TaskContext(name), signals_(signals) {}
  // Nothing of it runs any more afterwards.
  ~Component() override;

  // The hook calls back. mark: when the thread waits until next, or null; it is then told when this tick was
  // to come.
  void call_back(const rtm_timer_spec& spec, const timespec* mark) {
    spec_ = spec;
    mark_ = mark;
  }
  // A component without a thread, which this one executes whenever its own hook has run.
  void execute_after_hook(Component* slave) { slave_ = slave; }
  // Runs what is due, where the component has no thread of its own. Measured path.
  void execute() { getActivity()->execute(); }

  RTT::OutputPort<Message>& add_output(const std::string& topic, const Message& sample);
  // An event port: what arrives triggers the component.
  RTT::InputPort<Message>& add_input(const std::string& topic, const Message& sample,
                                     rtm_on_message on_message, void* user);

 private:
  struct Input {
    Input(const std::string& topic, const Message& sample, rtm_on_message callback, void* callback_user)
        : port(topic), latest(sample), on_message(callback), user(callback_user) {}
    RTT::InputPort<Message> port;
    Message latest;
    rtm_on_message on_message;
    void* user;
  };

  void updateHook() override;
  void read_all();
  // Calls; what it throws is noted and thrown on.
  template <typename Call>
  void noted(const char* where, Call&& call);

  Signals& signals_;
  rtm_timer_spec spec_{};
  const timespec* mark_ = nullptr;
  Component* slave_ = nullptr;
  std::deque<RTT::OutputPort<Message>> outputs_;
  std::deque<Input> inputs_;
};

}  // namespace rtmeter_orocos
