// Who answers: the server of a round trip, and of requests. Receives until it is asked to end, and stamps.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <string>

#include "measure/measurement.hpp"
#include "measure/publications.hpp"

namespace rtmeter {

class Answerer : public Measurement {
 public:
  explicit Answerer(Bench& bench) : Measurement(bench) {}

  void set_up() override {
    node_ = b_.session.create_node(name());
    create_ends();
  }

  void run() noexcept override {
    // A server has no warm-up: its window is the whole run, or begins when a listener is heard first.
    if (b_.receive != RTM_RECEIVE_LISTENER) enter(b_.config.warm_up);
    constexpr std::int64_t kHour = 3'600'000'000'000;
    while (!stopped()) {
      if (b_.receive == RTM_RECEIVE_POLL)
        b_.session.spin_some();
      else if (b_.receive == RTM_RECEIVE_SPIN_ONCE)
        b_.session.wait(kHour);
      else
        b_.session.spin(INT64_MAX);
    }
    leave();
  }

  Json facts() const override { return Json(Json::Object{{"overrun", nullptr}, {"grid", nullptr}}); }
  const char* grid_from() const override { return nullptr; }

 protected:
  // What its node is called.
  virtual std::string name() const { return "server"; }
  // The server's ends in the middleware. [setup]
  virtual void create_ends() = 0;

  // Hears what comes next, for some milliseconds.
  void hear_once() noexcept {
    constexpr std::int64_t kLook = 10'000'000;
    if (b_.receive == RTM_RECEIVE_POLL)
      b_.session.spin_some();
    else if (b_.receive == RTM_RECEIVE_LISTENER)
      usleep(1'000);
    else
      b_.session.wait(kLook);
  }
  // Once it was asked to end: hears what further publishers, who have ended, have under way, until nothing
  // more comes; no longer than the supervisor allows.
  void hear_out(const Publications& from) noexcept {
    constexpr std::int64_t kQuiet = 100'000'000, kMost = 2'000'000'000;
    const std::int64_t give_up_ns = b_.clock.now_ns() + kMost;
    std::int64_t now_ns = b_.clock.now_ns(), quiet_ns = now_ns;
    for (std::uint64_t seen = from.seen();
         from.expected() && now_ns < std::min(quiet_ns + kQuiet, give_up_ns); now_ns = b_.clock.now_ns()) {
      hear_once();
      if (from.seen() != seen) quiet_ns = b_.clock.now_ns();
      seen = from.seen();
    }
  }

  // What was received was answered: its stamps, as columns_of() has them; measured path.
  template <typename... Stamps>
  void answered(const rtm_message& message, Stamps... stamps) noexcept {
    stampers_.note();
    if (message.sequence == RTM_SEQUENCE_HELLO) return greeted();
    const std::int64_t row[] = {static_cast<std::int64_t>(message.sequence), stamps..., kServed};
    b_.recorder.record(row);
  }

 private:
  // A client asks, and nothing is measured yet.
  void greeted() noexcept {
    if (b_.receive != RTM_RECEIVE_LISTENER || stampers_.several()) return;
    b_.usage.follow(gettid());
    enter(b_.config.warm_up);
  }
};

}  // namespace rtmeter
