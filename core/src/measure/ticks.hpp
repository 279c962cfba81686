// Which release a periodic timer's callback serves (measurements.md, timer).
#pragma once

#include <cstdint>

#include "log/recorder.hpp"
#include "measure/grid.hpp"

namespace rtmeter {

class Ticks {
 public:
  enum class Rule { reported, every_tick, jumps };

  // fixed: the grid is given (sleep_then_spin_some); otherwise t0 comes from the first reported time,
  // or is inferred: the earliest callback - k*T of the warm-up, frozen after it. A reported time belongs to
  // the nearest release, or, where slack_ns is given, to the last one that is at most so much after it.
  Ticks(Rule rule, std::int64_t period_ns, std::int64_t warm_up)
      : Ticks(rule, period_ns, warm_up, period_ns / 2) {}
  Ticks(Rule rule, std::int64_t period_ns, std::int64_t warm_up, std::int64_t slack_ns)
      : rule_(rule), warm_up_(warm_up), slack_ns_(slack_ns) {
    grid_.period_ns = period_ns;
  }
  void fix(std::int64_t t0_ns) noexcept {
    grid_.t0_ns = t0_ns;
    state_ = State::fixed;
    fixed_ = true;
    slack_ns_ = grid_.period_ns - 1;  // a reported time belongs to the first sleep that ends at it or after
  }

  // The release that a callback at callback_ns serves; below next() if it had been served already. Where
  // the rule is `reported` and nothing is (kAbsent), it is found as in `jumps`.
  // Measured path.
  std::int64_t serve(std::int64_t callback_ns, std::int64_t expected_ns) noexcept {
    if (state_ == State::unknown) {
      grid_.t0_ns = rule_ == Rule::reported ? expected_ns : callback_ns;
      state_ = rule_ == Rule::reported ? State::fixed : State::estimating;
    }
    const std::int64_t k = release_of(callback_ns, expected_ns);
    if (state_ == State::estimating) {
      const std::int64_t t0_ns = callback_ns - k * grid_.period_ns;
      if (t0_ns < grid_.t0_ns) grid_.t0_ns = t0_ns;
      if (k >= warm_up_ - 1) state_ = State::fixed;
    }
    if (k >= next_) next_ = k + 1;
    return k;
  }

  std::int64_t next() const noexcept { return next_; }  // the earliest release not yet settled
  bool known() const noexcept { return state_ != State::unknown; }
  const Grid& grid() const noexcept { return grid_; }
  // Whose grid it is, known before the first tick: what is inferred has the timer's constant delay in it.
  const char* t0_from() const noexcept {
    return fixed_ ? "core" : rule_ == Rule::reported ? "reported" : "inferred";
  }
  const char* name() const noexcept {
    return rule_ == Rule::reported ? "reported" : rule_ == Rule::every_tick ? "every_tick" : "jumps";
  }

 private:
  enum class State { unknown, estimating, fixed };

  std::int64_t release_of(std::int64_t callback_ns, std::int64_t expected_ns) const noexcept {
    if (rule_ == Rule::every_tick) return next_;
    if (rule_ == Rule::reported && expected_ns != kAbsent) {
      const std::int64_t into_ns = expected_ns + slack_ns_ - grid_.release_ns(next_);
      if (into_ns >= 0 && into_ns < grid_.period_ns) return next_;  // as most: spares a division
      return grid_.latest(expected_ns + slack_ns_);
    }
    return callback_ns < grid_.release_ns(next_ + 1) ? next_ : grid_.latest(callback_ns);
  }

  Rule rule_;
  std::int64_t warm_up_;
  Grid grid_;
  std::int64_t slack_ns_;
  State state_ = State::unknown;
  bool fixed_ = false;  // the grid was given
  std::int64_t next_ = 0;
};

}  // namespace rtmeter
