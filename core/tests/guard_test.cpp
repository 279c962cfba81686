// Who is put first for want of a CPU, and for how long.
#include "system/guard.hpp"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "system/limits.hpp"

namespace rtmeter {
namespace {

// A thread that is not heard for ten seconds has priority until it is heard again; one that is to end a run
// keeps it.
TEST(Guard, LendsItsPriorityToWhoIsStarvedUntilItIsHeard) {
  if (!has_capability(CAP_SYS_NICE)) GTEST_SKIP() << "needs CAP_SYS_NICE";
  sigset_t ending, before;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ending, &before);
  const auto until = [](auto&& is_so) {
    for (int i = 0; i < 6'000 && !is_so(); ++i) usleep(10'000);
    return is_so();
  };
  const auto has = [](int policy) { return [policy] { return sched_getscheduler(0) == policy; }; };
  std::atomic<bool> asked{false};
  {
    Guard guard(false, {}, {static_cast<int>(gettid())}, [&] { asked.store(true); });
    if (sched_getscheduler(guard.tid()) != SCHED_FIFO) GTEST_SKIP() << "no real-time policy here";
    EXPECT_EQ(guard.rescues(), 0);
    EXPECT_TRUE(until(has(SCHED_FIFO)));
    EXPECT_TRUE(until([&] { return guard.rescues() == 1; }));
    guard.alive();
    EXPECT_TRUE(until(has(SCHED_OTHER)));  // by the next alive() at the latest
    kill(getpid(), SIGTERM);
    EXPECT_TRUE(until(has(SCHED_FIFO)));
    EXPECT_TRUE(until([&] { return asked.load(); }));
    guard.alive();
    EXPECT_TRUE(has(SCHED_FIFO)());
  }
  const sched_param normal{.sched_priority = 0};
  sched_setscheduler(0, SCHED_OTHER, &normal);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// nohup ignores it, and what it starts inherits that.
TEST(Guard, AHangupThatIsIgnoredAsksForNothing) {
  const auto asks = [](int number) {
    const sigset_t asking = ending_signals();
    return sigismember(&asking, number) == 1;
  };
  const auto before = std::signal(SIGHUP, SIG_IGN);
  EXPECT_FALSE(asks(SIGHUP));
  EXPECT_TRUE(asks(SIGINT) && asks(SIGTERM));
  std::signal(SIGHUP, SIG_DFL);
  EXPECT_TRUE(asks(SIGHUP));
  std::signal(SIGHUP, before);
}

}  // namespace
}  // namespace rtmeter
