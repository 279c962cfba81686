// Who answers: the server of a round trip, and of requests. Receives until it is asked to end, and stamps.
#pragma once

#include <string>

#include "measure/measurement.hpp"

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
    Stampers::own_tid();
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
