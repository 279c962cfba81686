// A timer made of timer_create(), whose signal the thread itself waits for with sigtimedwait().
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include <atomic>

#include "system.hpp"
#include "timer.hpp"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace rtmeter_posix {
namespace {

// The signal is blocked in the thread that creates the timer, which is the one that waits for it, so it
// never runs a handler: sigtimedwait() takes it from the queue.
class PosixTimer final : public Timer {
 public:
  PosixTimer() : waiter_(static_cast<pid_t>(syscall(SYS_gettid))) {
    sigemptyset(&signals_);
    sigaddset(&signals_, kSignal);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kSignal;
    event.sigev_notify_thread_id = waiter_;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0)
      throw system_error("option timer", "posix", "timer_create",
                         "raise the limit of pending signals (ulimit -i), or choose timer=clock_nanosleep");
  }

  // The signal stays blocked: one that is still queued must not end the process.
  ~PosixTimer() override {
    timer_delete(timer_);
    const timespec at_once{};
    while (sigtimedwait(&signals_, nullptr, &at_once) > 0) {
    }
  }

 private:
  static const int kSignal;

  int start(std::int64_t first_ns) noexcept override {
    itimerspec when{};
    when.it_value = to_timespec(first_ns);
    if (periodic()) when.it_interval = to_timespec(period_ns());
    return timer_settime(timer_, TIMER_ABSTIME, &when, nullptr);
  }

  void wake() noexcept override { syscall(SYS_tgkill, getpid(), waiter_, kSignal); }

  int collect(std::int64_t timeout_ns) noexcept override {
    siginfo_t info;
    const Timeout timeout(timeout_ns);
    if (sigtimedwait(&signals_, &info, timeout.get()) < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    // A wake-up by wake(), or the signal of a shot that has been replaced since.
    if (info.si_code != SI_TIMER || nothing_due(now_ns())) return 0;
    expired(1 + static_cast<std::int64_t>(info.si_overrun));
    return 0;
  }

  pid_t waiter_;
  sigset_t signals_;
  timer_t timer_{};
};

const int PosixTimer::kSignal = SIGRTMIN + 3;

}  // namespace

std::unique_ptr<Timer> make_posix_timer() { return std::make_unique<PosixTimer>(); }

}  // namespace rtmeter_posix
