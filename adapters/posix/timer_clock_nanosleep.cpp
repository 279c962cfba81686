// A timer made of absolute clock_nanosleep(): the floor under all timers.
#include <algorithm>

#include "system.hpp"
#include "timer.hpp"

namespace rtmeter_posix {
namespace {

class ClockNanosleepTimer final : public Timer {
 private:
  // Nothing ends a clock_nanosleep() from another thread without a race but its end, so it sleeps in
  // slices: periods longer than one cost a wake-up a slice.
  static constexpr std::int64_t kSlice = kSecond / 10;

  int start(std::int64_t /*first_ns*/) noexcept override { return 0; }
  void wake() noexcept override {}  // the slice ends

  int collect(std::int64_t timeout_ns) noexcept override {
    if (timeout_ns == 0) {
      expired_until(now_ns());
      return 0;
    }
    const std::int64_t due_ns = next_due_ns();
    const std::int64_t now = now_ns();
    const std::int64_t until_ns = std::min(due_ns, now + std::min(timeout_ns, kSlice));
    if (until_ns > now) {
      const timespec until = to_timespec(until_ns);
      const int error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
      if (error != 0) return error == EINTR ? 0 : -1;
    }
    if (until_ns == due_ns) expired_next();
    return 0;
  }
};

}  // namespace

std::unique_ptr<Timer> make_clock_nanosleep_timer() { return std::make_unique<ClockNanosleepTimer>(); }

}  // namespace rtmeter_posix
