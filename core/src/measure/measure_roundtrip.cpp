// roundtrip: how long does ping-pong take, and does it come back in time?
#include <pthread.h>
#include <unistd.h>

#include <thread>

#include "errors.hpp"
#include "measure/exchange.hpp"
#include "measure/payload.hpp"

namespace rtmeter {
namespace {

enum Column : std::size_t { kRelease, kSent, kReceived, kFree, kStatus, kColumns };

class Client final : public Exchange<kColumns, kSent, kReceived, kFree> {
 public:
  explicit Client(Bench& bench)
      : Exchange(bench), open_(bench.config.in_flight == InFlight::open),
        payload_(bench.config.payload_bytes) {
    apart_ = b_.receive == RTM_RECEIVE_LISTENER;
  }

  void set_up() override {
    node_ = b_.session.create_node("client");
    publisher_ = b_.session.create_publisher(node_, "ping");
    b_.session.create_subscriber(node_, "pong", &Client::on_pong, this);
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
    run_paced(!open_, overrun_or(open_ ? RTM_CATCH_UP : RTM_SKIP) == RTM_SKIP);
    finish();
    stop_receiver();
  }

  Json facts() const override {
    return Json(Json::Object{{"overrun", name_of(overrun_or(open_ ? RTM_CATCH_UP : RTM_SKIP))},
                             {"grid", grid_json(grid_, "core")}});
  }

 private:
  void send(std::int64_t k, std::int64_t release_ns) noexcept override {
    const rtm_message message = payload_.message(static_cast<std::uint64_t>(k));
    Slot& s = pending_.take();
    s.set(kRelease, release_ns);
    s.set(kSent, b_.clock.now_ns());  // T1
    pending_.publish(s, State::outstanding);
    b_.session.publish(publisher_, message);
  }

  static void on_pong(void* user, const rtm_message* message) {
    auto* self = static_cast<Client*>(user);
    const std::int64_t now_ns = self->b_.clock.now_ns();  // T2
    const bool intact = self->payload_.intact(*message);
    if (message->sequence == RTM_SEQUENCE_HELLO) {
      if (!intact) return;
      if (self->greets_.load(std::memory_order_acquire)) self->stampers_.note();
      self->heard_.store(true, std::memory_order_release);
      self->answered_.notify();
      return;
    }
    const auto k = static_cast<std::int64_t>(message->sequence);
    if (!intact || k < 0 || k >= self->b_.config.total()) {
      self->note(self->b_.counters.corrupted, k < 0 ? INT64_MAX : k);
      return;
    }
    const bool is_answer = self->accept(k, now_ns);
    if (self->spins_itself()) self->b_.session.interrupt();
    if (!is_answer) return;
    if (k < self->highest_) self->note(self->b_.counters.out_of_order, k);
    if (k > self->highest_) self->highest_ = k;
  }

  // Finds the server by asking until it answers, or the middleware knows that it never will.
  void connect() {
    ask([this](std::int64_t timeout_ns) { b_.session.wait(timeout_ns); });
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
    for (std::int64_t ask_ns = INT64_MIN; !heard_.load(std::memory_order_acquire) && !stopped();) {
      const std::int64_t now_ns = b_.clock.now_ns();
      if (now_ns >= give_up_ns) throw no_answer();
      if (now_ns >= look_ns) {
        if (may_not_talk()) throw no_answer();
        look_ns = now_ns + kLook;
      }
      if (now_ns >= ask_ns) {
        b_.session.publish(publisher_, payload_.message(RTM_SEQUENCE_HELLO));
        ask_ns = now_ns + kAgain;
      }
      const std::uint32_t ticket = answered_.ticket();
      if (!apart_)
        receive(kAgain);
      else if (!heard_.load(std::memory_order_acquire))
        answered_.wait(ticket, kAgain);
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
            "did not answer within " + std::to_string(b_.config.connect_timeout_ns / 1'000'000) +
                " ms (topics ping and pong; " + std::to_string(b_.session.refused_calls()) +
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
    receiver_tid_.store(gettid(), std::memory_order_release);
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
  Payload payload_;
  void* publisher_ = nullptr;
  std::atomic<bool> heard_{false}, greets_{false};
  alignas(kCacheLine) std::int64_t highest_ = -1;  // receiver's own: the highest k answered
  alignas(kCacheLine) std::thread receiver_;
  std::atomic<int> receiver_tid_{0};
  std::atomic<bool> receiver_done_{false}, receiver_ended_{false};
};

class Server final : public Measurement {
 public:
  explicit Server(Bench& bench) : Measurement(bench) {}

  void set_up() override {
    node_ = b_.session.create_node("server");
    publisher_ = b_.session.create_publisher(node_, "pong");
    b_.session.create_subscriber(node_, "ping", &Server::on_ping, this);
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

 private:
  // Publishes the payload back, untouched.
  static void on_ping(void* user, const rtm_message* message) {
    auto* self = static_cast<Server*>(user);
    const std::int64_t received_ns = self->b_.clock.now_ns();
    const std::int64_t sent_ns = self->b_.clock.now_ns();
    self->b_.session.publish(self->publisher_, *message);
    self->stampers_.note();
    if (message->sequence == RTM_SEQUENCE_HELLO) return self->greeted();
    const std::int64_t row[] = {static_cast<std::int64_t>(message->sequence), received_ns, sent_ns, kServed};
    self->b_.recorder.record(row);
  }

  // A client asks, and nothing is measured yet.
  void greeted() noexcept {
    if (b_.receive != RTM_RECEIVE_LISTENER || stampers_.several()) return;
    b_.usage.follow(gettid());
    enter(b_.config.warm_up);
  }

  void* publisher_ = nullptr;
};

}  // namespace

std::unique_ptr<Measurement> make_roundtrip_client(Bench& bench) { return std::make_unique<Client>(bench); }
std::unique_ptr<Measurement> make_roundtrip_server(Bench& bench) { return std::make_unique<Server>(bench); }

}  // namespace rtmeter
