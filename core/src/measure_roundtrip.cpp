// roundtrip: how long does ping-pong take, and does it come back in time?
#include <pthread.h>
#include <unistd.h>

#include <thread>

#include "errors.hpp"
#include "exchange.hpp"
#include "payload.hpp"

namespace rtmeter {
namespace {

enum Column : std::size_t { kRelease, kSent, kReceived, kFree, kStatus, kColumns };

class Client final : public Exchange<kColumns, kSent, kReceived, kFree> {
 public:
  explicit Client(Bench& bench)
      : Exchange(bench), open_(bench.config.in_flight == InFlight::open),
        payload_(bench.config.payload_bytes) {}

  void set_up() override {
    node_ = b_.session.create_node("client");
    publisher_ = b_.session.create_publisher(node_, "ping");
    b_.session.create_subscriber(node_, "pong", &Client::on_pong, this);
    connect();
  }

  // With open loop the sender must not wait for replies: a second thread receives them.
  void begin() override {
    if (!open_ || b_.clock.scripted()) return;
    receiver_ = std::thread([this] { receive(); });
    while (receiver_tid_.load(std::memory_order_acquire) == 0) std::this_thread::yield();
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

  void wait_for_answer(std::int64_t timeout_ns) noexcept override {
    constexpr std::int64_t kLook = 10'000'000;
    if (receiver_tid_.load(std::memory_order_relaxed) == 0)
      Exchange::wait_for_answer(timeout_ns);
    else
      b_.clock.sleep_until_ns(b_.clock.now_ns() + (timeout_ns < kLook ? timeout_ns : kLook));
  }

  static void on_pong(void* user, const rtm_message* message) {
    auto* self = static_cast<Client*>(user);
    const std::int64_t now_ns = self->b_.clock.now_ns();  // T2
    const bool intact = self->payload_.intact(*message);
    if (message->sequence == RTM_SEQUENCE_HELLO) {
      if (intact) self->connected_.store(true, std::memory_order_release);
      return;
    }
    const auto k = static_cast<std::int64_t>(message->sequence);
    if (!intact || k < 0 || k >= self->b_.config.total()) {
      self->note(self->b_.counters.corrupted, k < 0 ? INT64_MAX : k);
      return;
    }
    if (!self->accept(k, now_ns)) return;
    if (k < self->highest_) self->note(self->b_.counters.out_of_order, k);
    if (k > self->highest_) self->highest_ = k;
  }

  // Finds the server by asking until it answers, or the middleware knows that it never will.
  void connect() {
    constexpr std::int64_t kLook = 1'000'000'000;
    const std::int64_t give_up_ns = b_.clock.now_ns() + b_.config.connect_timeout_ns;
    std::int64_t look_ns = b_.clock.now_ns() + kLook;
    while (!connected_.load(std::memory_order_acquire) && !stopped()) {
      const std::int64_t now_ns = b_.clock.now_ns();
      if (now_ns >= give_up_ns) throw no_answer();
      if (now_ns >= look_ns) {
        if (may_not_talk()) throw no_answer();
        look_ns = now_ns + kLook;
      }
      b_.session.publish(publisher_, payload_.message(RTM_SEQUENCE_HELLO));
      b_.session.wait(20'000'000);
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
    while (!receiver_done_.load(std::memory_order_relaxed)) Exchange::wait_for_answer(100'000'000);
  }
  void stop_receiver() noexcept {
    if (!receiver_.joinable()) return;
    receiver_done_.store(true, std::memory_order_relaxed);
    b_.session.interrupt();
    receiver_.join();
  }

  const bool open_;
  Payload payload_;
  void* publisher_ = nullptr;
  std::atomic<bool> connected_{false};
  alignas(kCacheLine) std::int64_t highest_ = -1;  // receiver's own: the highest k answered
  alignas(kCacheLine) std::thread receiver_;
  std::atomic<int> receiver_tid_{0};
  std::atomic<bool> receiver_done_{false};
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
    enter(b_.config.warm_up);  // a server has no warm-up: its window is the whole run
    while (!stopped()) {
      if (b_.drive == RTM_POLL)
        b_.session.spin_some();
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
    if (message->sequence == RTM_SEQUENCE_HELLO) return;
    const std::int64_t row[] = {static_cast<std::int64_t>(message->sequence), received_ns, sent_ns, kServed};
    self->b_.recorder.record(row);
  }

  void* publisher_ = nullptr;
};

}  // namespace

std::unique_ptr<Measurement> make_roundtrip_client(Bench& bench) { return std::make_unique<Client>(bench); }
std::unique_ptr<Measurement> make_roundtrip_server(Bench& bench) { return std::make_unique<Server>(bench); }

}  // namespace rtmeter
