// timer, one_shot: arm, wait for the callback, arm again.
#include "errors.hpp"
#include "measure/measurement.hpp"

namespace rtmeter {
namespace {

class OneShot final : public Measurement {
 public:
  explicit OneShot(Bench& bench) : Measurement(bench) {}

  void set_up() override {
    if (b_.config.overrun)
      throw Failure("overrun", name_of(*b_.config.overrun),
                    "has no meaning for one-shot timers: the next is "
                    "armed after the callback",
                    "leave it out");
    rtm_timer_traits traits{};
    const rtm_timer_spec spec{RTM_ONE_SHOT, b_.config.period_ns, &OneShot::on_fire, this};
    timer_ = b_.session.create_timer(b_.session.create_node("timer"), spec, traits);
  }

  void run() noexcept override {
    const std::int64_t timeout_ns = b_.config.period_ns;
    std::int64_t k = 0;
    for (const std::int64_t total = b_.config.total(); k < total && !stopped(); ++k) {
      enter(k);
      fired_.store(false, std::memory_order_relaxed);
      const std::int64_t before_ns = b_.clock.now_ns();
      b_.session.arm(timer_, before_ns);
      const std::int64_t after_ns = b_.clock.now_ns();
      const std::int64_t lost_at_ns = before_ns + 10 * timeout_ns + 1'000'000'000;
      const bool fired = wait(before_ns, lost_at_ns);
      // A callback that came after the shot had been given up does not make it less lost.
      const bool lost = !fired || callback_ns_ > lost_at_ns;
      const Status s = !lost ? kServed : stopped() && b_.clock.now_ns() < lost_at_ns ? kInFlight : kLost;
      const std::int64_t row[] = {before_ns,
                                  after_ns,
                                  lost ? kAbsent : callback_ns_,
                                  lost ? kAbsent : fire_.reported_expected_ns,
                                  lost ? kAbsent : fire_.reported_actual_ns,
                                  status(s, k)};
      b_.recorder.record(row);
    }
    leave();
  }

  Json facts() const override { return Json(Json::Object{{"overrun", nullptr}, {"grid", nullptr}}); }
  const char* grid_from() const override { return nullptr; }

 private:
  // True once the callback ran; false when the shot is lost or the run was stopped.
  bool wait(std::int64_t before_ns, std::int64_t lost_at_ns) noexcept {
    for (std::int64_t n = 1; !fired_.load(std::memory_order_acquire); ++n) {
      const std::int64_t now_ns = b_.clock.now_ns();
      if (now_ns >= lost_at_ns || stopped()) return false;
      switch (b_.drive) {
        case RTM_SPIN:
          b_.session.wait(lost_at_ns - now_ns);
          break;
        case RTM_SLEEP_THEN_SPIN_SOME:
          b_.clock.reach_ns(before_ns + n * b_.config.period_ns);
          b_.session.spin_some();
          break;
        case RTM_POLL:
          b_.session.spin_some();
          break;
      }
    }
    return true;
  }

  static void on_fire(void* user, const rtm_fire* fire) {
    auto* self = static_cast<OneShot*>(user);
    const std::int64_t now_ns = self->b_.clock.now_ns();  // the stamp
    self->callback_ns_ = now_ns;
    self->fire_ = *fire;
    self->fired_.store(true, std::memory_order_release);
  }

  void* timer_ = nullptr;
  std::atomic<bool> fired_{false};
  std::int64_t callback_ns_ = 0;
  rtm_fire fire_{};
};

}  // namespace

std::unique_ptr<Measurement> make_one_shot(Bench& bench) { return std::make_unique<OneShot>(bench); }

}  // namespace rtmeter
