// Who is beside a round trip's two ends, in a process of its own: a further subscriber of topic ping, which
// hears what the server hears, and counts; a further publisher of it; or a node that does nothing.
#include <algorithm>
#include <atomic>

#include "measure/answerer.hpp"
#include "measure/receipts.hpp"
#include "system/guard.hpp"

namespace rtmeter {
namespace {

class FurtherSubscriber final : public Answerer {
 public:
  explicit FurtherSubscriber(Bench& bench)
      : Answerer(bench), receipts_(bench.config, bench.config.beside->number), publications_(bench.config) {}

  // Asked to end, it hears what is still under way: until the last ping has come, or the loss timeout.
  void run() noexcept override {
    Answerer::run();
    constexpr std::int64_t kMost = 2'000'000'000;  // of what the supervisor allows
    const std::int64_t until_ns = b_.clock.now_ns() + std::min(b_.config.loss_timeout_ns, kMost);
    while (!receipts_.has_last() && b_.clock.now_ns() < until_ns) hear_once();
    hear_out(publications_);
  }

  bool greeted() const override {
    return receipts_.greeted() && (!publications_.expected() || publications_.greeted());
  }
  Json facts() const override {
    Json facts = Answerer::facts();
    facts["heard"] = Json(Json::Array{receipts_.to_json()});
    facts["heard_of"] = publications_.to_json();
    return facts;
  }

 private:
  std::string name() const override { return receipts_.name(); }
  void create_ends() override {
    b_.session.create_subscriber(node_, "ping", &FurtherSubscriber::on_ping, this);
  }

  static void on_ping(void* user, const rtm_message* message) {
    auto& self = *static_cast<FurtherSubscriber*>(user);
    self.stampers_.note();
    if (!self.publications_.take(*message)) self.receipts_.take(*message);
  }

  Receipts receipts_;
  Publications publications_;
};

// Publishes on topic ping as the client does, at releases of its own, until it is asked to end; nobody
// answers.
class FurtherPublisher final : public Measurement {
 public:
  explicit FurtherPublisher(Bench& bench)
      : Measurement(bench), number_(bench.config.beside->number), payload_(bench.config.payload_bytes) {}

  void set_up() override {
    node_ = b_.session.create_node(publication::name_of(number_));
    publisher_ = b_.session.create_publisher(node_, "ping");
  }

  // Greets until whoever started all processes says that each who is to hear it has; publishes until it is
  // told that the client has ended, and what was due until then, unless that takes long; says that it is
  // silent, and stays until it is asked to end: what is under way may need it.
  void run() noexcept override {
    while (told() == 0 && !stopped()) {
      b_.session.offer(publisher_, message(publication::kGreeting));
      pause();
    }
    enter(b_.config.warm_up);
    grid_ = {b_.clock.first_release_ns(b_.config.period_ns), b_.config.period_ns};
    constexpr std::int64_t kMost = 1'000'000'000;
    std::int64_t give_up_ns = INT64_MAX;
    while (!stopped()) {
      const std::int64_t release_ns = grid_.release_ns(static_cast<std::int64_t>(published_));
      if (const std::int64_t now_ns = b_.clock.now_ns(); told() < 0) {
        give_up_ns = std::min(give_up_ns, now_ns + kMost);
        if (now_ns < release_ns || now_ns >= give_up_ns) break;
      }
      b_.clock.reach_ns(release_ns);
      if (!stopped()) b_.session.publish(publisher_, message(published_++));
    }
    silent_ns_.store(b_.clock.now_ns(), std::memory_order_relaxed);
    leave();
    while (!stopped()) pause();
  }

  std::int64_t silent_ns() const override { return silent_ns_.load(std::memory_order_relaxed); }
  Json facts() const override {
    return Json(Json::Object{{"overrun", name_of(RTM_CATCH_UP)},
                             {"grid", grid_json(grid_, "core")},
                             {"published", Json::Object{{"name", publication::name_of(number_)},
                                                        {"sent", published_ - b_.session.refused_calls()}}}});
  }

 private:
  static std::int64_t told() noexcept { return told_to_go().load(std::memory_order_acquire); }
  void pause() noexcept { b_.clock.sleep_until_ns(b_.clock.now_ns() + 20'000'000); }
  rtm_message message(std::uint64_t k) noexcept {
    return payload_.message(publication::sequence(number_, k));
  }

  const int number_;
  Payload payload_;
  void* publisher_ = nullptr;
  Grid grid_;
  std::uint64_t published_ = 0;
  std::atomic<std::int64_t> silent_ns_{kAbsent};
};

class BackgroundNode final : public Answerer {
 public:
  using Answerer::Answerer;

 private:
  std::string name() const override { return "background" + std::to_string(b_.config.beside->number); }
  void create_ends() override {}
};

}  // namespace

std::unique_ptr<Measurement> make_beside(Bench& bench) {
  if (bench.config.beside->as == BesideAs::node) return std::make_unique<BackgroundNode>(bench);
  if (bench.config.beside->as == BesideAs::publisher) return std::make_unique<FurtherPublisher>(bench);
  return std::make_unique<FurtherSubscriber>(bench);
}

}  // namespace rtmeter
