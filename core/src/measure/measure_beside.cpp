// Who is beside a round trip's two ends, in a process of its own: a further subscriber of topic ping, which
// hears what the server hears, and counts; or a node that does nothing.
#include <unistd.h>

#include <algorithm>

#include "measure/answerer.hpp"
#include "measure/receipts.hpp"

namespace rtmeter {
namespace {

class FurtherSubscriber final : public Answerer {
 public:
  explicit FurtherSubscriber(Bench& bench)
      : Answerer(bench), receipts_(bench.config, bench.config.beside->number) {}

  // Asked to end, it hears what is still under way: until the last ping has come, or the loss timeout.
  void run() noexcept override {
    Answerer::run();
    constexpr std::int64_t kMost = 2'000'000'000;  // of what the supervisor allows
    const std::int64_t until_ns = b_.clock.now_ns() + std::min(b_.config.loss_timeout_ns, kMost);
    while (!receipts_.has_last() && b_.clock.now_ns() < until_ns) hear_once();
  }

  bool greeted() const override { return receipts_.greeted(); }
  Json facts() const override {
    Json facts = Answerer::facts();
    facts["heard"] = Json(Json::Array{receipts_.to_json()});
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
    self.receipts_.take(*message);
  }

  void hear_once() noexcept {
    constexpr std::int64_t kLook = 10'000'000;
    if (b_.receive == RTM_RECEIVE_POLL)
      b_.session.spin_some();
    else if (b_.receive == RTM_RECEIVE_LISTENER)
      usleep(1'000);
    else
      b_.session.wait(kLook);
  }

  Receipts receipts_;
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
  return std::make_unique<FurtherSubscriber>(bench);
}

}  // namespace rtmeter
