#include "timer.hpp"

#include <algorithm>

#include "system.hpp"

namespace rtmeter_posix {

rtm_timer_traits Timer::configure(const rtm_timer_spec& spec, rtm_overrun overrun) {
  spec_ = spec;
  overrun_ = overrun;
  return {overrun == RTM_CATCH_UP ? RTM_EVERY_TICK : RTM_JUMPS, overrun, 1};
}

int Timer::arm(std::int64_t now_ns) noexcept {
  first_ns_ = now_ns + spec_.period_ns;
  next_ = expired_ = 0;
  running_ = true;
  return start(first_ns_);
}

int Timer::dispatch(int at_most) noexcept {
  if (next_ >= expired_ && collect(0) < 0) return -1;
  int callbacks = 0;
  for (; callbacks < at_most && next_ < expired_ && !interrupted(); ++callbacks) fire();
  return callbacks;
}

void Timer::fire() noexcept {
  const rtm_fire fire{due_ns(next_), RTM_ABSENT};
  ++next_;
  if (!periodic()) running_ = false;
  spec_.on_fire(spec_.user, &fire);  // may arm a one-shot again
  if (periodic() && overrun_ == RTM_SKIP) next_ = std::max(next_, ticks_before(now_ns()));
}

std::int64_t Timer::ticks_before(std::int64_t at_ns) const noexcept {
  const std::int64_t past_ns = at_ns - first_ns_;
  return past_ns <= 0 ? 0 : (past_ns + spec_.period_ns - 1) / spec_.period_ns;
}

std::int64_t Timer::next_due_ns() const noexcept { return running_ ? due_ns(next_) : kNever; }

void Timer::set_expired(std::int64_t ticks) noexcept {
  if (running_) expired_ = std::max(expired_, periodic() ? ticks : std::min<std::int64_t>(ticks, 1));
}

}  // namespace rtmeter_posix
