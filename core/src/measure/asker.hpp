// Who asks: the client of a round trip, and of requests. Finds its server, sends at each release, hears what
// comes back, on a thread of its own where it must.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "errors.hpp"
#include "measure/exchange.hpp"
#include "measure/payload.hpp"

namespace rtmeter {

// Columns as in Exchange; who derives makes the ends and sends a message.
template <std::size_t Columns, std::size_t kSent, std::size_t kAnswered, std::size_t kFree>
class Asker : public Exchange<Columns, kSent, kAnswered, kFree> {
  using Base = Exchange<Columns, kSent, kAnswered, kFree>;

 public:
  explicit Asker(Bench& bench)
      : Base(bench), payload_(bench.config.payload_bytes), open_(bench.config.in_flight == InFlight::open) {
    apart_ = b_.receive == RTM_RECEIVE_LISTENER;
  }

  void set_up() override {
    node_ = b_.session.create_node("client");
    create_ends();
    connect();
  }

  // A receiver of its own spins, and in an open loop, where the sender must not wait for replies, waits or
  // polls. It inherits the measured policy.
  void begin() override {
    if (b_.clock.scripted()) return;
    if (b_.receive == RTM_RECEIVE_SPIN || (open_ && b_.receive != RTM_RECEIVE_LISTENER)) {
      apart_ = true;
      receiver_ = std::thread([this] { receive(); });
      while (receiver_tid_.load(std::memory_order_acquire) == 0) std::this_thread::yield();
    }
    greet();
    follow_stamper();
  }
  void end() noexcept override { stop_receiver(); }
  std::vector<int> measured_tids() const override {
    const int tid = receiver_tid_.load(std::memory_order_acquire);
    return tid == 0 ? std::vector<int>{} : std::vector<int>{tid};
  }

  void run() noexcept override {
    this->run_paced(!open_, overrun_or(open_ ? RTM_CATCH_UP : RTM_SKIP) == RTM_SKIP);
    this->finish();
    stop_receiver();
  }

  Json facts() const override {
    return Json(Json::Object{{"overrun", name_of(overrun_or(open_ ? RTM_CATCH_UP : RTM_SKIP))},
                             {"grid", grid_json(grid_, "core")}});
  }

 protected:
  using Base::apart_, Base::answered_, Base::b_, Base::grid_, Base::node_, Base::note, Base::pending_,
      Base::stampers_, Base::stopped;
  using typename Base::Beside, typename Base::Ring, typename Base::Slot, typename Base::State;

  Payload payload_;

  // The client's ends in the middleware. [setup]
  virtual void create_ends() = 0;
  // What they are called, in words.
  virtual std::string ends() const = 0;
  // Measured path.
  virtual void transmit(const rtm_message& message) noexcept = 0;
  // The same before the run, where nobody may be there yet. False if the middleware refused it.
  virtual bool greet_with(const rtm_message& message) noexcept = 0;
  // That what comes beside an answer has come too: an end that the answer does not go through may not have
  // been found yet, and what is sent to it until then is lost.
  virtual bool heard_all() const noexcept { return true; }

  // From the callback: what came, and when (T2).
  void hear(const rtm_message& message, std::int64_t now_ns, Beside beside = {}) noexcept {
    const auto intact = [&] { return payload_.intact(message); };
    if (message.sequence == RTM_SEQUENCE_HELLO) {
      if (!intact()) return;
      if (greets_.load(std::memory_order_acquire)) stampers_.note();
      heard_.store(true, std::memory_order_release);
      answered_.notify();
      return;
    }
    const auto k = static_cast<std::int64_t>(message.sequence);
    if (k < 0 || k >= b_.config.total()) {
      note(b_.counters.corrupted, k < 0 ? INT64_MAX : k);
      return;
    }
    const bool is_answer = this->accept(k, now_ns, beside, intact);
    if (spins_itself()) b_.session.interrupt();
    if (!is_answer) return;
    if (k < highest_) note(b_.counters.out_of_order, k);
    if (k > highest_) highest_ = k;
  }

 private:
  using Base::enter, Base::follow_stamper, Base::grid_json, Base::overrun_or, Base::receive_once;

  void send(std::int64_t k, std::int64_t release_ns) noexcept override {
    const rtm_message message = payload_.message(static_cast<std::uint64_t>(k));
    Slot& s = pending_.take();
    s.set(0, release_ns);
    s.set(kSent, b_.clock.now_ns());  // T1
    pending_.publish(s, State::outstanding);
    transmit(message);
  }

  // Finds the server by asking until it answers, or the middleware knows that it never will.
  void connect() {
    ask([this](std::int64_t timeout_ns) {
      b_.receive == RTM_RECEIVE_CALL ? receive_once(timeout_ns) : b_.session.wait(timeout_ns);
    });
  }
  // Asks once more, to be answered in the way in which the run receives: who stamps is known from then on.
  void greet() {
    greets_.store(true, std::memory_order_release);
    ask([this](std::int64_t timeout_ns) { receive_once(timeout_ns); });
  }
  template <typename Wait>
  void ask(Wait&& receive) {
    constexpr std::int64_t kAgain = 20'000'000, kLook = 1'000'000'000;
    const std::int64_t give_up_ns = b_.clock.now_ns() + b_.config.connect_timeout_ns;
    std::int64_t look_ns = b_.clock.now_ns() + kLook;
    heard_.store(false, std::memory_order_release);
    const auto heard = [this] { return heard_.load(std::memory_order_acquire); };
    for (std::int64_t ask_ns = INT64_MIN; !(heard() && heard_all()) && !stopped();) {
      const std::int64_t now_ns = b_.clock.now_ns();
      if (now_ns >= give_up_ns && heard()) return;  // what does not come beside it is in no row
      if (now_ns >= give_up_ns) throw no_answer();
      if (now_ns >= look_ns) {
        if (may_not_talk()) throw no_answer();
        look_ns = now_ns + kLook;
      }
      if (now_ns >= ask_ns) {
        if (!greet_with(payload_.message(RTM_SEQUENCE_HELLO))) ++refused_;
        ask_ns = now_ns + kAgain;
      }
      const std::uint32_t ticket = answered_.ticket();
      if (heard() && heard_all()) break;
      apart_ ? static_cast<void>(answered_.wait(ticket, kAgain)) : receive(kAgain);
    }
  }
  bool may_not_talk() const {
    try {
      return b_.session.describe().find("incompatible_qos") != nullptr;
    } catch (const std::exception&) {  // a daemon that does not answer yet
      return false;
    }
  }

  // Why the run cannot be, as far as the middleware knows.
  Failure no_answer() const {
    const Json known = b_.session.describe();
    if (const Json* policy = known.find("incompatible_qos"))
      return {"incompatible_qos", text_of(*policy),
              "client and server found each other, and may not exchange data",
              "give both ends the same quality of service: reliability, and what settings files of the "
              "middleware's say"};
    const Json* discovery = known.find("discovery");
    return {"server", b_.config.session,
            "did not answer within " + std::to_string(b_.config.connect_timeout_ns / 1'000'000) + " ms (" +
                ends() + "; " + std::to_string(refused_) +
                " of the messages were refused by the middleware)" +
                (discovery == nullptr ? "" : "; " + text_of(*discovery)),
            "check that the server runs, that both ends have the same session, address and payload "
            "limit, and that nothing filters the traffic; or raise the connect timeout"};
  }

  // A described value; a repeated key is a list.
  static std::string text_of(const Json& value) {
    return value.is_array() ? text_of(value.as_array().front()) : value.as_string();
  }

  void receive() noexcept {
    pthread_setname_np(pthread_self(), "rtm-receiver");
    receiver_tid_.store(Stampers::own_tid(), std::memory_order_release);
    while (!receiver_done_.load(std::memory_order_relaxed)) {
      if (b_.receive == RTM_RECEIVE_SPIN)
        b_.session.spin(INT64_MAX);
      else
        receive_once(100'000'000);
    }
    receiver_ended_.store(true, std::memory_order_release);
  }
  // On a scripted clock nothing is in parallel: the sender spins until a reply came.
  bool spins_itself() const noexcept { return !apart_ && b_.receive == RTM_RECEIVE_SPIN; }
  void stop_receiver() noexcept {
    if (!receiver_.joinable()) return;
    receiver_done_.store(true, std::memory_order_relaxed);
    for (; !receiver_ended_.load(std::memory_order_acquire); usleep(1'000)) b_.session.interrupt();
    receiver_.join();
  }

  const bool open_;
  std::atomic<bool> heard_{false}, greets_{false};
  std::uint64_t refused_ = 0;  // greetings
  alignas(kCacheLine) std::int64_t highest_ = -1;  // receiver's own: the highest k answered
  alignas(kCacheLine) std::thread receiver_;
  std::atomic<int> receiver_tid_{0};
  std::atomic<bool> receiver_done_{false}, receiver_ended_{false};
};

}  // namespace rtmeter
