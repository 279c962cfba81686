// timer, periodic: how punctual is the middleware's own periodic timer?
#include "errors.hpp"
#include "measure/periodic_timer.hpp"

namespace rtmeter {
namespace {

class Periodic final : public Measurement, private PeriodicTimer::Client {
 public:
  explicit Periodic(Bench& bench) : Measurement(bench), timer_(bench, *this) {}

  void set_up() override { timer_.create(b_.session.create_node("timer")); }

  void run() noexcept override {
    if (b_.config.warm_up == 0) enter(0);
    timer_.run();
    leave();
    settle_rest();
  }

  Json facts() const override { return timer_.facts(); }
  const char* grid_from() const override { return timer_.grid_from(); }
  Json::Array warnings() const override { return timer_.warnings(); }

 private:
  // Measured path; now_ns is the stamp.
  bool on_tick(std::int64_t k, std::int64_t now_ns, const rtm_fire& fire) noexcept override {
    const std::int64_t total = b_.config.total();
    for (; settled_ < k && settled_ < total; ++settled_) {
      // Passed over: the thread became free with the previous callback, or with this one.
      const std::int64_t free_ns = last_ns_ > timer_.release_ns(settled_) ? last_ns_ : now_ns;
      record(settled_, kAbsent, {RTM_ABSENT, RTM_ABSENT}, free_ns, kSkipped);
    }
    if (k == settled_ && k < total) {
      record(k, now_ns, fire, kAbsent, kServed);
      ++settled_;
    }
    last_ns_ = now_ns;
    enter(settled_);
    return settled_ == total;
  }

  void record(std::int64_t k, std::int64_t callback_ns, const rtm_fire& fire, std::int64_t free_ns,
              Status s) noexcept {
    const std::int64_t row[] = {timer_.release_ns(k),    callback_ns, fire.reported_expected_ns,
                                fire.reported_actual_ns, free_ns,     status(s, k)};
    b_.recorder.record(row);
  }

  // Releases that passed and will not be served: the run was interrupted, or the timer fell silent.
  void settle_rest() noexcept {
    if (!timer_.grid_known()) return;
    const std::int64_t now_ns = b_.clock.now_ns();
    b_.recorder.wait_for_room();
    for (; settled_ < b_.config.total() && timer_.release_ns(settled_) <= now_ns; ++settled_)
      record(settled_, kAbsent, {RTM_ABSENT, RTM_ABSENT}, now_ns, kSkipped);
  }

  PeriodicTimer timer_;
  std::int64_t settled_ = 0;          // releases recorded
  std::int64_t last_ns_ = INT64_MIN;  // the previous callback
};

}  // namespace

std::unique_ptr<Measurement> make_periodic(Bench& bench) { return std::make_unique<Periodic>(bench); }

}  // namespace rtmeter
