#include "scripted_clock.hpp"

#include <algorithm>

namespace rtmeter::null {

std::int64_t ScriptedClock::reach_ns(std::int64_t release_ns) noexcept {
  const std::int64_t since = release_ns - kFirstReleaseNs;
  const std::int64_t delay =
      delay_of_ && since >= 0 && since % period_ns_ == 0 ? delay_of_(since / period_ns_) : 0;
  run_until(std::max(release_ns + delay, now_ns_));
  return now_ns_;
}

void ScriptedClock::schedule(std::int64_t at_ns, std::function<void()> event) {
  events_.push({std::max(at_ns, now_ns_), order_++, std::move(event)});
}

void ScriptedClock::run_one() noexcept {
  const Event event = events_.top();
  events_.pop();
  now_ns_ = event.at_ns;
  event.run();
}

void ScriptedClock::run_until(std::int64_t at_ns) noexcept {
  while (!events_.empty() && events_.top().at_ns <= at_ns) run_one();
  now_ns_ = std::max(now_ns_, at_ns);
}

bool ScriptedClock::run_next(std::int64_t at_ns) noexcept {
  if (events_.empty() || events_.top().at_ns > at_ns) {
    now_ns_ = std::max(now_ns_, at_ns);
    return false;
  }
  const std::int64_t instant_ns = events_.top().at_ns;
  while (!events_.empty() && events_.top().at_ns == instant_ns) run_one();
  return true;
}

}  // namespace rtmeter::null
