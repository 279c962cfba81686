// An adapter at work: the C table with errors as exceptions, handles kept, options accounted for.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "json/json.hpp"
#include "measure/config.hpp"
#include "rtmeter/adapter.h"

namespace rtmeter {

// What describe() puts, as JSON: dotted keys nest, repeated keys and list keys become arrays.
Json describe(const rtm_adapter& adapter, const void* self);

// The drive to use: the one asked for, or the adapter's first for this measurement; Failure if the
// adapter does not measure this, or not with that drive.
rtm_drive choose_drive(const Json& description, const Config& config);

// Failure if components were asked for that the adapter cannot have.
void check_components(const Json& description, const Config& config);

// Failure if requests are to go over what the adapter has none of.
void check_interface(const Json& description, const Config& config);

// How messages are received: as asked, or the first way of the adapter's that the drive allows; Failure if
// it cannot, or if there are none to receive.
rtm_receive choose_receive(const Json& description, const Config& config, rtm_drive drive);

class Session {
 public:
  // Prepares the run for the adapter; nothing is started yet.
  Session(const rtm_adapter& adapter, const Config& config, rtm_drive drive, rtm_receive receive);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Setup; all throw Failure with the adapter's own words.
  void start();
  void* create_node(const std::string& name);
  void* create_timer(void* node, const rtm_timer_spec& spec, rtm_timer_traits& traits);
  void* create_publisher(void* node, const std::string& topic);
  void* create_subscriber(void* node, const std::string& topic, rtm_on_message on_message, void* user);
  void* create_client(void* node, const std::string& service, rtm_on_reply on_reply, void* user);
  void* create_server(void* node, const std::string& service, rtm_on_message on_request, void* user);
  // From now on on_match is called when the matches of the node's ends change.
  void watch(void* node, rtm_on_match on_match, void* user);
  // From now on on_stamp is called with the kernel's stamps of the node's messages.
  void tell_stamps(void* node, rtm_on_stamp on_stamp, void* user);
  // Failure if an option was given that the adapter never read: it has none such, or not in this run.
  void refuse_unread_options(const Json& description) const;
  // The config as it was asked for, without options that were only offered and that the adapter never read.
  Json in_effect(const Json& config) const;
  Json describe() const { return rtmeter::describe(adapter_, self_); }
  // Undoes start(): from now on nothing calls back. Also done by the destructor.
  void stop() noexcept;
  bool started() const { return self_ != nullptr; }
  const rtm_adapter& adapter() const { return adapter_; }

  // Measured path. Negative results are counted; the measurement goes on, the result says so.
  void arm(void* timer, std::int64_t now_ns) noexcept { count(adapter_.arm(timer, now_ns)); }
  void publish(void* publisher, const rtm_message& message) noexcept {
    count(adapter_.publish(publisher, &message));
  }
  void call(void* client, const rtm_message& request) noexcept { count(adapter_.call(client, &request)); }
  void reply(void* server, rtm_reply what, const rtm_message& message) noexcept {
    count(adapter_.reply(server, what, &message));
  }
  // For what is not measured: not counted. True if the middleware took it.
  bool offer(void* publisher, const rtm_message& message) noexcept {
    return took(adapter_.publish(publisher, &message));
  }
  bool offer_call(void* client, const rtm_message& request) noexcept {
    return took(adapter_.call(client, &request));
  }
  // No adapter sees a timeout below 0.
  void spin(std::int64_t timeout_ns) noexcept {
    count(adapter_.spin(self_, timeout_ns < 0 ? 0 : timeout_ns));
  }
  void wait(std::int64_t timeout_ns) noexcept {
    count(adapter_.wait(self_, timeout_ns < 0 ? 0 : timeout_ns));
  }
  void spin_some() noexcept { count(adapter_.spin_some(self_)); }
  // Nothing to interrupt where the middleware was not started (wakeup, before: none).
  void interrupt() noexcept {
    if (self_ != nullptr && adapter_.interrupt != nullptr) adapter_.interrupt(self_);
  }
  std::uint64_t refused_calls() const noexcept { return refused_.load(std::memory_order_relaxed); }
  // What the first of those that threw did, in brackets; empty if none threw.
  std::string exception() const;
  // The middleware is gone: nothing more will come.
  bool broken() const noexcept { return broken_.load(std::memory_order_relaxed); }

 private:
  bool only_offered(const std::string& option) const;
  bool took(int result) noexcept {
    if (result == RTM_BROKEN) broken_.store(true, std::memory_order_relaxed);
    return result == 0;
  }
  void count(int result) noexcept {
    if (!took(result)) refused_.fetch_add(1, std::memory_order_relaxed);
  }
  template <typename Call>
  void checked(Call&& call);

  const rtm_adapter& adapter_;
  rtm_run run_{};
  std::string session_;
  std::vector<rtm_option> options_;
  const std::vector<std::string> offered_;
  void* self_ = nullptr;
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<bool> broken_{false};
};

}  // namespace rtmeter
