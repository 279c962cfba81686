// What carries messages: between processes (round trip) or between components of one (cycle).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "loop.hpp"
#include "rtmeter/adapter.hpp"
#include "timer.hpp"

namespace rtmeter_posix {

class Messaging {
 public:
  virtual ~Messaging() = default;

  // Setup, as in the contract; they throw SetupError.
  virtual void* create_node(const std::string& /*name*/) { return this; }
  virtual void* create_publisher(void* node, const std::string& topic) = 0;
  virtual void* create_subscriber(void* node, const std::string& topic, rtm_on_message on_message,
                                  void* user) = 0;
  virtual void describe(rtmeter::Sink& sink) const = 0;
  // Where ends find each other; before they are made.
  virtual void watch(rtm_on_match /*on_match*/, void* /*user*/) {}

  // The kernel's stamps of messages; before ends are made.
  virtual void tell_stamps(rtm_on_stamp /*on_stamp*/, void* /*user*/) {
    throw rtmeter::SetupError("kernel_stamps", "true", "the kernel stamps no messages of this transport",
                              "choose transport=udp, or leave it out");
  }

  // Hands the message over without blocking; negative if it could not. Measured path.
  virtual int publish(void* publisher, const rtm_message& message) noexcept = 0;
  // What the measured thread spins.
  virtual Loop& loop() noexcept = 0;
  // The timer of that thread, where it can have one beside the messages.
  virtual Timer* timer() noexcept { return nullptr; }
};

std::unique_ptr<Messaging> make_udp(const rtm_run& run);
std::unique_ptr<Messaging> make_unix(const rtm_run& run);
std::unique_ptr<Messaging> make_shared_memory_with_futex(const rtm_run& run);
std::unique_ptr<Messaging> make_shared_memory_with_polling(const rtm_run& run);
std::unique_ptr<Messaging> make_topics(const rtm_run& run);
std::unique_ptr<Messaging> make_everybody(const rtm_run& run);
std::unique_ptr<Messaging> make_components(const rtm_run& run);

// Who called back for a topic.
struct Subscription {
  rtm_on_message on_message = nullptr;
  void* user = nullptr;
};

// What shared memory carries.
constexpr std::size_t kLargestSharedPayload = std::size_t{16} << 20;

// What helps where a transport does not carry a payload: shared memory alone if it does.
inline std::string less_or_shared(const rtm_run& run) {
  const std::string less = "choose a smaller payload";
  return run.payload_bytes > kLargestSharedPayload ? less : less + ", or transport=shm_futex";
}

// The error of a payload that the transport cannot carry.
inline rtmeter::SetupError payload_error(const rtm_run& run, const std::string& carrier, std::size_t limit,
                                         const std::string& remedy) {
  return rtmeter::SetupError("payload_bytes", std::to_string(run.payload_bytes),
                             carrier + " carries at most " + std::to_string(limit) + " bytes of payload",
                             remedy);
}

}  // namespace rtmeter_posix
