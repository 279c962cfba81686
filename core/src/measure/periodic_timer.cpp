#include "measure/periodic_timer.hpp"

#include "errors.hpp"

namespace rtmeter {

PeriodicTimer::PeriodicTimer(Bench& bench, Client& client)
    : b_(bench), client_(client),
      ticks_(Ticks::Rule::every_tick, bench.config.period_ns, bench.config.warm_up) {}

void PeriodicTimer::create(void* node) {
  const rtm_timer_spec spec{RTM_PERIODIC, b_.config.period_ns, &PeriodicTimer::on_fire, this};
  timer_ = b_.session.create_timer(node, spec, traits_);
  if (b_.config.overrun && *b_.config.overrun != traits_.overrun)
    throw Failure("overrun", name_of(*b_.config.overrun),
                  std::string("this timer decides itself: it does ") + name_of(traits_.overrun),
                  std::string("leave it out, or ask for ") + name_of(traits_.overrun));
  const auto rule = traits_.reports_monotonic != 0    ? Ticks::Rule::reported
                    : traits_.ticks == RTM_EVERY_TICK ? Ticks::Rule::every_tick
                                                      : Ticks::Rule::jumps;
  ticks_ = Ticks(rule, b_.config.period_ns, b_.config.warm_up);
}

// Sets in_callback_, then looks at done_; close() sets done_, then looks at in_callback_. In sequential
// consistency one of them sees the other.
void PeriodicTimer::on_fire(void* user, const rtm_fire* fire) {
  auto* self = static_cast<PeriodicTimer*>(user);
  const std::int64_t now_ns = self->b_.clock.now_ns();  // the stamp
  self->in_callback_.store(true);
  if (!self->done_.load()) self->serve(now_ns, *fire);
  self->in_callback_.store(false, std::memory_order_release);
}

void PeriodicTimer::serve(std::int64_t now_ns, const rtm_fire& fire) noexcept {
  heard_ns_.store(now_ns, std::memory_order_relaxed);
  b_.watchdog.store(now_ns + silence_ns(), std::memory_order_relaxed);
  const std::int64_t next = ticks_.next();
  const std::int64_t k = ticks_.serve(now_ns, fire.reported_expected_ns);
  if (k < next) b_.counters.extra_callbacks.fetch_add(1, std::memory_order_relaxed);
  if (!client_.on_tick(k, now_ns, fire)) return;
  done_.store(true);
  b_.session.interrupt();
}

void PeriodicTimer::close() noexcept {
  constexpr std::int64_t kLook = 1'000'000;
  done_.store(true);
  while (in_callback_.load()) b_.clock.sleep_until_ns(b_.clock.now_ns() + kLook);
}

void PeriodicTimer::run() noexcept {
  const std::int64_t first_ns = b_.clock.first_release_ns(b_.config.period_ns);
  heard_ns_.store(first_ns, std::memory_order_relaxed);  // silence counts from here
  const std::int64_t armed_ns = b_.clock.now_ns();
  b_.session.arm(timer_, armed_ns);
  // The sleeps follow the ticks, of which the first is due a period after it is armed (scripted: at
  // first_ns).
  if (b_.drive == RTM_SLEEP_THEN_SPIN_SOME)
    ticks_.fix((b_.clock.scripted() ? first_ns : armed_ns + b_.config.period_ns) + b_.config.sleep_offset());
  switch (b_.drive) {
    case RTM_SPIN:
      spin();
      break;
    case RTM_POLL:
      poll();
      break;
    case RTM_SLEEP_THEN_SPIN_SOME:
      sleep_then_spin_some();
      break;
  }
  close();
}

void PeriodicTimer::spin() noexcept {
  b_.watchdog.store(heard_ns_.load(std::memory_order_relaxed) + silence_ns(), std::memory_order_relaxed);
  while (!over() && !silent_) {
    // On a real clock spin() runs undisturbed: the watchdog ends a silence.
    const std::int64_t silent_at_ns = heard_ns_.load(std::memory_order_relaxed) + silence_ns();
    b_.session.spin(b_.clock.scripted() ? silent_at_ns - b_.clock.now_ns() : INT64_MAX);
    note_silence();
  }
  b_.watchdog.store(INT64_MAX, std::memory_order_relaxed);
}

void PeriodicTimer::poll() noexcept {
  while (!over() && !silent_) {
    b_.session.spin_some();
    note_silence();
  }
}

void PeriodicTimer::note_silence() noexcept {
  silent_ = !over() && b_.clock.now_ns() - heard_ns_.load(std::memory_order_relaxed) >= silence_ns();
}

void PeriodicTimer::sleep_then_spin_some() noexcept {
  // A tick may come one sleep late, so a few sleeps follow the last release.
  constexpr std::int64_t kGrace = 10;
  for (std::int64_t k = 0; k < b_.config.total() + kGrace && !over(); ++k) {
    b_.clock.reach_ns(ticks_.grid().release_ns(k));
    b_.session.spin_some();
  }
  silent_ = !over();
}

Json PeriodicTimer::facts() const {
  return Json(Json::Object{{"overrun", name_of(traits_.overrun)},
                           {"ticks", ticks_.name()},
                           {"grid", ticks_.known() ? Json(Json::Object{{"t0_ns", ticks_.grid().t0_ns},
                                                                       {"period_ns", ticks_.grid().period_ns},
                                                                       {"t0_from", grid_from()}})
                                                   : Json()}});
}

Json::Array PeriodicTimer::warnings() const {
  Json::Array list;
  if (ticks_.known() && std::string(grid_from()) == "inferred")
    list.push_back(Json(Json::Object{
        {"type", "grid_inferred"},
        {"message",
         "the middleware does not say when its callbacks were due: the grid is that of the earliest "
         "one, and what delays all of them alike is in no latency"},
        {"hint", "judge how they vary, not how late they are; set them beside no latency on a known grid"}}));
  if (silent_)
    list.push_back(Json(Json::Object{
        {"type", "timer_fell_silent"},
        {"message", "the timer stopped calling back before the last release; the rest counts as skipped"},
        {"hint", "look at the middleware's own messages; try another drive"}}));
  return list;
}

}  // namespace rtmeter
