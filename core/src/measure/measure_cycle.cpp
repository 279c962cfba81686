// cycle: request and respond between two components of one process.
#include "measure/exchange.hpp"
#include "measure/payload.hpp"
#include "measure/periodic_timer.hpp"

namespace rtmeter {
namespace {

// Which thread something happens on. Measured path: no system call.
class SeenOn {
 public:
  void here() noexcept {
    static thread_local const char thread = 0;  // its address tells threads apart
    const char* known = thread_.load(std::memory_order_relaxed);
    if (known == &thread) return;
    if (known != nullptr || !thread_.compare_exchange_strong(known, &thread)) several_.store(true);
  }
  bool any() const noexcept { return thread_.load() != nullptr; }
  bool one() const noexcept { return any() && !several_.load(); }
  bool same_as(const SeenOn& other) const noexcept { return thread_.load() == other.thread_.load(); }

 private:
  std::atomic<const char*> thread_{nullptr};
  std::atomic<bool> several_{false};
};

enum Column : std::size_t {
  kRelease,
  kStart,
  kRequestSent,
  kRequestReceived,
  kResponseSent,
  kResponseReceived,
  kFree,
  kStatus,
  kColumns
};

class Cycle final : public Exchange<kColumns, kRequestSent, kResponseReceived, kFree>,
                    private PeriodicTimer::Client {
 public:
  explicit Cycle(Bench& bench) : Exchange(bench), timer_(bench, *this), payload_(bench.config.payload_bytes) {
    apart_ = bench.receive == RTM_RECEIVE_LISTENER;
  }

  void set_up() override {
    void* a = b_.session.create_node("a");
    void* b = b_.session.create_node("b");
    request_ = b_.session.create_publisher(a, "request");
    response_ = b_.session.create_publisher(b, "response");
    b_.session.create_subscriber(b, "request", &Cycle::on_request, this);
    b_.session.create_subscriber(a, "response", &Cycle::on_response, this);
    if (b_.drive == RTM_SPIN) timer_.create(a);
  }

  void run() noexcept override {
    if (b_.drive == RTM_SPIN) {
      if (b_.config.warm_up == 0) enter(0);
      timer_.run();
      if (!timer_.grid_known()) return leave();  // it never called back: no release is known
      grid_ = timer_.grid();
      const std::int64_t now_ns = b_.clock.now_ns();
      if (!stopped()) pass_over_before(grid_.latest(now_ns) + 1, now_ns);  // the timer fell silent
    } else {
      run_paced(true, overrun_or(RTM_CATCH_UP) == RTM_SKIP);
    }
    finish();
  }

  Json facts() const override {
    return b_.drive == RTM_SPIN ? timer_.facts()
                                : Json(Json::Object{{"overrun", name_of(overrun_or(RTM_CATCH_UP))},
                                                    {"grid", grid_json(grid_, "core")}});
  }
  const char* grid_from() const override {
    return b_.drive == RTM_SPIN ? timer_.grid_from() : Measurement::grid_from();
  }
  // Component a starts and is answered, b responds.
  const char* components() const override {
    if (!responded_.any() || !answered_.any()) return nullptr;
    if (!started_.one() || !answered_.one() || !responded_.one() || !answered_.same_as(started_))
      return "middleware_threads";
    return name_of(responded_.same_as(started_) ? RTM_ONE_THREAD : RTM_TWO_THREADS);
  }
  Json::Array warnings() const override { return timer_.warnings(); }

 private:
  void send(std::int64_t k, std::int64_t release_ns) noexcept override {
    send_started(k, release_ns, b_.clock.now_ns());
  }

  void send_started(std::int64_t k, std::int64_t release_ns, std::int64_t start_ns) noexcept {
    const rtm_message message = payload_.message(static_cast<std::uint64_t>(k));
    started_.here();
    Slot& s = pending_.take();
    s.set(kRelease, release_ns);
    s.set(kStart, start_ns);
    s.set(kRequestSent, b_.clock.now_ns());
    pending_.publish(s, State::outstanding);
    b_.session.publish(request_, message);
  }

  // Releases before k that are not sent: the thread became free with the previous tick, or now.
  void pass_over_before(std::int64_t k, std::int64_t now_ns) noexcept {
    const std::int64_t end = k < b_.config.total() ? k : b_.config.total();
    for (std::int64_t j = pending_.next(); j < end; j = pending_.next()) {
      if (!make_room()) return;
      pass_over(timer_.release_ns(j), last_ns_ > timer_.release_ns(j) ? last_ns_ : now_ns);
    }
  }

  // The middleware's timer starts the cycle (drive spin).
  bool on_tick(std::int64_t k, std::int64_t now_ns, const rtm_fire& /*fire*/) noexcept override {
    const std::int64_t total = b_.config.total();
    pass_over_before(k, now_ns);
    if (make_room() && k == pending_.next() && k < total) send_started(k, timer_.release_ns(k), now_ns);
    last_ns_ = now_ns;
    settle(now_ns);
    enter(pending_.next());
    return pending_.next() >= total;
  }

  static void on_request(void* user, const rtm_message* message) {
    auto* self = static_cast<Cycle*>(user);
    const std::int64_t received_ns = self->b_.clock.now_ns();
    Slot* s = self->pending_.find(static_cast<std::int64_t>(message->sequence));
    if (s == nullptr) return;
    self->responded_.here();
    s->set(kRequestReceived, received_ns);
    s->set(kResponseSent, self->b_.clock.now_ns());
    self->b_.session.publish(self->response_, *message);
  }

  static void on_response(void* user, const rtm_message* message) {
    auto* self = static_cast<Cycle*>(user);
    const std::int64_t now_ns = self->b_.clock.now_ns();
    self->answered_.here();
    self->accept(static_cast<std::int64_t>(message->sequence), now_ns, {}, [] { return true; });
  }

  PeriodicTimer timer_;
  Payload payload_;
  void* request_ = nullptr;
  void* response_ = nullptr;
  SeenOn started_, responded_, answered_;
  std::int64_t last_ns_ = INT64_MIN;  // the previous tick
};

}  // namespace

std::unique_ptr<Measurement> make_cycle(Bench& bench) { return std::make_unique<Cycle>(bench); }

}  // namespace rtmeter
