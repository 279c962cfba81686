// Non-critical traffic beside a round trip: each end sends on a topic of its own, from an ordinary thread,
// and hears the other's. On the measured node, whose callbacks the measured thread dispatches, or on a
// second adapter in the same process, which that ordinary thread spins.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>

#include "measure/measurement.hpp"
#include "measure/payload.hpp"
#include "system/service_thread.hpp"

namespace rtmeter {

class SecondTopic {
 public:
  // Failure if the run is to have one and cannot. description: what it says of itself before the start.
  static void check(const Json& description, const Config& config);

  // Creates the topic's ends; throws Failure. node: the measured one.
  SecondTopic(Bench& bench, void* node);
  ~SecondTopic() { stop(); }
  SecondTopic(const SecondTopic&) = delete;
  SecondTopic& operator=(const SecondTopic&) = delete;

  // Client: begins to send, and waits until it hears the server; throws Failure. Setup.
  void connect();
  // Begins to send.
  void start() noexcept { move_to(Phase::sending); }
  // Ends its thread; with a second adapter, that too.
  void stop() noexcept;
  int tid() const noexcept { return thread_ ? thread_->tid() : 0; }
  // What was asked for, and what became of it at this end.
  Json to_json() const;
  // Nothing was sent, or nothing came: the doubt about the run, then.
  bool silent() const noexcept { return sent_.load() == 0 || received_.load() == 0; }
  Json doubt() const;

 private:
  enum class Phase { opening, open, sending, done };

  static void on_message(void* user, const rtm_message* message);
  void create_ends(Session& session, void* node);
  void live() noexcept;
  void open();
  void move_to(Phase phase) noexcept;
  void send_in_time() noexcept;
  bool ended_before(std::int64_t at_ns) noexcept;

  Bench& b_;
  const SecondTopicConfig& asked_;
  Payload payload_;
  void* publisher_ = nullptr;
  std::atomic<std::uint64_t> sent_{0}, refused_{0}, received_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ = Phase::opening;
  std::exception_ptr failure_;
  Config config_;                     // the second adapter's
  std::unique_ptr<Session> another_;  // same_process; its thread's own
  std::optional<ServiceThread> thread_;
};

}  // namespace rtmeter
