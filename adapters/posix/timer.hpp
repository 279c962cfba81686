// One timer, one_shot or periodic, on CLOCK_MONOTONIC, in three makes that differ in how they wait; a fourth
// is that of a cycle's component (components.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "loop.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_posix {

// Tick i is due at first_ns + i * period. catch_up calls back for each tick in order. skip serves the
// tick it waited for, however late, then passes over those that went by until the callback returned.
class Timer : public Loop {
 public:
  // Setup.
  rtm_timer_traits configure(const rtm_timer_spec& spec, rtm_overrun overrun);
  // Starts, or starts again, counting from now_ns. Measured path.
  int arm(std::int64_t now_ns) noexcept;

 protected:
  // Has the system count ticks from first_ns on; what it counted before is void. Measured path.
  virtual int start(std::int64_t first_ns) noexcept = 0;
  // Waits until a tick goes by, at most timeout_ns, and tells one of the three below. Measured path.
  virtual int collect(std::int64_t timeout_ns) noexcept = 0;

  void expired(std::int64_t more_ticks) noexcept { set_expired(expired_ + more_ticks); }
  void expired_next() noexcept { set_expired(next_ + 1); }
  void expired_until(std::int64_t now_ns) noexcept { set_expired(ticks_before(now_ns + 1)); }

  bool periodic() const noexcept { return spec_.mode == RTM_PERIODIC; }
  std::int64_t period_ns() const noexcept { return spec_.period_ns; }
  // When the next tick to call back for is due; kNever when the timer is not running.
  std::int64_t next_due_ns() const noexcept;
  // Calls back for ticks that went by.
  int dispatch(int at_most) noexcept override;
  // True if no tick that was not collected yet can have gone by at now_ns.
  bool nothing_due(std::int64_t now_ns) const noexcept { return !running_ || now_ns < due_ns(expired_); }

 private:
  int block(std::int64_t timeout_ns) noexcept override { return next_ < expired_ ? 0 : collect(timeout_ns); }
  void fire() noexcept;
  void set_expired(std::int64_t ticks) noexcept;
  std::int64_t due_ns(std::int64_t tick) const noexcept { return first_ns_ + tick * spec_.period_ns; }
  // The number of ticks due before at_ns.
  std::int64_t ticks_before(std::int64_t at_ns) const noexcept;

  rtm_timer_spec spec_{};
  rtm_overrun overrun_ = RTM_CATCH_UP;
  bool running_ = false;
  std::int64_t first_ns_ = 0;
  std::int64_t expired_ = 0;  // ticks known to have gone by since arm()
  std::int64_t next_ = 0;     // the next tick to call back for
};

std::unique_ptr<Timer> make_clock_nanosleep_timer();
std::unique_ptr<Timer> make_timerfd_timer();
std::unique_ptr<Timer> make_posix_timer();

}  // namespace rtmeter_posix
