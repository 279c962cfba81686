// A clock on which no time passes but what a script says: a queue of events, run in order of time.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "rtmeter/clock.hpp"

namespace rtmeter::null {

class ScriptedClock final : public Clock {
 public:
  // Release 0 of every grid; early enough events still come after time 0.
  static constexpr std::int64_t kFirstReleaseNs = std::int64_t{1} << 40;

  std::int64_t now_ns() noexcept override { return now_ns_; }
  // Runs the events due until then.
  void sleep_until_ns(std::int64_t at_ns) noexcept override { run_until(at_ns); }
  // Runs the events due until max(release_ns + delay, now), delay by set_delay(), and returns that.
  std::int64_t reach_ns(std::int64_t release_ns) noexcept override;
  bool scripted() const noexcept override { return true; }
  std::int64_t first_release_ns(std::int64_t period_ns) noexcept override {
    period_ns_ = period_ns;
    return kFirstReleaseNs;
  }

  // How late (negative: early) the sleep to release k ends.
  void set_delay(std::function<std::int64_t(std::int64_t k)> delay_of) { delay_of_ = std::move(delay_of); }

  // Runs `event` when time has come to at_ns (or at once if it has passed).
  void schedule(std::int64_t at_ns, std::function<void()> event);
  // When the next event is due; INT64_MAX if there is none.
  std::int64_t next_ns() const noexcept { return events_.empty() ? INT64_MAX : events_.top().at_ns; }
  // Runs everything due until at_ns, then sets the time to at_ns.
  void run_until(std::int64_t at_ns) noexcept;
  // Runs everything due at the next instant that has events, if it is not after at_ns; else goes to
  // at_ns. True if something ran.
  bool run_next(std::int64_t at_ns) noexcept;

 private:
  struct Event {
    std::int64_t at_ns;
    std::uint64_t order;
    std::function<void()> run;
    bool operator<(const Event& other) const {  // the earliest on top, first come first
      return at_ns != other.at_ns ? at_ns > other.at_ns : order > other.order;
    }
  };
  void run_one() noexcept;

  std::int64_t now_ns_ = 0;
  std::int64_t period_ns_ = 1;
  std::uint64_t order_ = 0;
  std::priority_queue<Event> events_;
  std::function<std::int64_t(std::int64_t)> delay_of_;
};

}  // namespace rtmeter::null
