// wakeup: how late does a sleeping thread run?
#include "measure/measurement.hpp"

namespace rtmeter {
namespace {

class Wakeup final : public Measurement {
 public:
  explicit Wakeup(Bench& bench) : Measurement(bench) {}

  void set_up() override {
    if (b_.config.before == Before::init_and_node) b_.session.create_node("idle");
  }

  void run() noexcept override {
    const bool skip = overrun_or(RTM_CATCH_UP) == RTM_SKIP;
    grid_ = {b_.clock.first_release_ns(b_.config.period_ns), b_.config.period_ns};
    std::int64_t free_ns = INT64_MIN;  // when the thread became free
    std::int64_t k = 0;
    for (const std::int64_t total = b_.config.total(); k < total && !stopped(); ++k) {
      const std::int64_t release_ns = grid_.release_ns(k);
      if (skip && release_ns < free_ns) {
        record(k, kAbsent, free_ns, kSkipped);
        continue;
      }
      enter(k);
      const std::int64_t wake_ns = b_.clock.reach_ns(release_ns);
      if (stopped() && wake_ns < release_ns) break;  // woken to end, not by the release
      record(k, wake_ns, kAbsent, kServed);
      free_ns = wake_ns;
    }
    leave();
    settle_interrupted(k);
  }

  Json facts() const override {
    return Json(
        Json::Object{{"overrun", name_of(overrun_or(RTM_CATCH_UP))}, {"grid", grid_json(grid_, "core")}});
  }

 private:
  void record(std::int64_t k, std::int64_t wake_ns, std::int64_t free_ns, Status s) noexcept {
    const std::int64_t row[] = {grid_.release_ns(k), wake_ns, free_ns, status(s, k)};
    b_.recorder.record(row);
  }
  // An interrupted backlog: releases that had passed without being served are skipped, not forgotten.
  void settle_interrupted(std::int64_t k) noexcept {
    const std::int64_t now_ns = b_.clock.now_ns();
    b_.recorder.wait_for_room();
    for (; k < b_.config.total() && grid_.release_ns(k) <= now_ns; ++k) record(k, kAbsent, now_ns, kSkipped);
  }

  Grid grid_;
};

}  // namespace

std::unique_ptr<Measurement> make_wakeup(Bench& bench) { return std::make_unique<Wakeup>(bench); }

}  // namespace rtmeter
