// A timer made of timerfd, waited for with epoll.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "system.hpp"
#include "timer.hpp"

namespace rtmeter_posix {
namespace {

class TimerfdTimer final : public Timer {
 public:
  TimerfdTimer()
      : timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    for (const Fd* fd : {&timer_, &wake_}) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.fd = fd->get();
      if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd->get(), &event) != 0)
        throw system_error("option timer", "timerfd", "cannot make a timerfd watched by epoll",
                           "raise the limit of open files (ulimit -n), or choose timer=clock_nanosleep");
    }
  }

 private:
  int start(std::int64_t first_ns) noexcept override {
    itimerspec when{};
    when.it_value = to_timespec(first_ns);
    if (periodic()) when.it_interval = to_timespec(period_ns());
    return timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
  }

  void wake() noexcept override { eventfd_write(wake_.get(), 1); }

  int collect(std::int64_t timeout_ns) noexcept override {
    if (timeout_ns > 0) {
      epoll_event event;
      const int ready = epoll_wait(epoll_.get(), &event, 1, to_milliseconds(timeout_ns));
      if (ready < 0) return errno == EINTR ? 0 : -1;
      if (ready == 0) return 0;
      if (event.data.fd == wake_.get()) {
        eventfd_t count;
        return eventfd_read(wake_.get(), &count) == 0 || errno == EAGAIN ? 0 : -1;
      }
    }
    std::uint64_t ticks = 0;
    if (read(timer_.get(), &ticks, sizeof ticks) < 0) return errno == EAGAIN ? 0 : -1;
    expired(static_cast<std::int64_t>(ticks));
    return 0;
  }

  // epoll waits whole milliseconds: rounded up, at most a day, -1 for no timeout.
  static int to_milliseconds(std::int64_t ns) noexcept {
    constexpr std::int64_t kMilli = 1'000'000, kDay = 86'400 * kSecond;
    if (ns == kNever) return -1;
    return static_cast<int>((ns < kDay ? ns + kMilli - 1 : kDay) / kMilli);
  }

  Fd timer_, wake_, epoll_;
};

}  // namespace

std::unique_ptr<Timer> make_timerfd_timer() { return std::make_unique<TimerfdTimer>(); }

}  // namespace rtmeter_posix
