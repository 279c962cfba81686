// The measured path of a loop does no allocation, system call or page fault, but for the sleep that it is
// asked for: by the traps of the probes' tests.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <functional>
#include <thread>

#include "loop_folder.hpp"
#include "rtmeter/loop.h"
#include "system/limits.hpp"
#include "traps.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;
using namespace traps;

constexpr std::int64_t kT = 1'000'000;

struct Caught {
  std::uint64_t allocations = 0, calls = 0, sleeps = 0;
  long faults = 0;
};

long faults_of_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

// What the jobs of a loop are caught at, after some that warm up; on a thread of its own, which keeps the
// trap.
Caught caught_at(const std::function<void(rtm_loop*, int)>& jobs) {
  const TemporaryDirectory directory;
  const std::string folder = directory / "loops";
  Caught caught;
  std::thread([&] {
    rtm_loop_options options = RTM_LOOP_OPTIONS;
    options.folder = folder.c_str();
    options.warm_up_ns = kT;
    char error[300] = "";
    rtm_loop* loop = rtm_loop_open("arm", kT, &options, error, sizeof error);
    ASSERT_NE(loop, nullptr) << error;
    jobs(loop, 10);
    ASSERT_TRUE(set_trap());
    forget_calls();
    faults_of_thread();
    const long before = faults_of_thread();
    open_window();
    watch_thread();
    jobs(loop, 300);
    close_window();
    caught.faults = faults_of_thread() - before;
    for (const auto side : {std::size_t{0}, std::size_t{1}}) {
      caught.allocations += counts().allocations[side];
      for (std::size_t n = 0; n < kMostCalls; ++n)
        (n == SYS_clock_nanosleep ? caught.sleeps : caught.calls) += counts().calls[side][n];
    }
    EXPECT_EQ(rtm_loop_close(loop, error, sizeof error), 0) << error;
  }).join();
  return caught;
}

class LoopPath : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_capability(CAP_IPC_LOCK))
      GTEST_SKIP() << "needs CAP_IPC_LOCK: without locked memory pages fault";
    if (read_text("/proc/sys/kernel/seccomp/actions_avail").value_or("").find("trap") == std::string::npos)
      GTEST_SKIP() << "needs seccomp filters";
    ASSERT_EQ(mlockall(MCL_CURRENT | MCL_FUTURE), 0);
  }
  void TearDown() override { munlockall(); }
};

TEST_F(LoopPath, StampsAreNothingButReadingsOfTheClockAndARow) {
  const Caught caught = caught_at([due = std::int64_t{0}](rtm_loop* loop, int jobs) mutable {
    for (int i = 0; i < jobs; ++i) {
      due += i % 7 == 6 ? 3 * kT : kT;  // with releases that are passed over, and all of them late
      rtm_loop_wake(loop, due);
      rtm_loop_done(loop);
      if (i % 50 == 49) rtm_loop_wake(loop, due);  // and what is counted
      if (i % 50 == 49) rtm_loop_done(loop);
    }
  });
  EXPECT_EQ(caught.allocations, 0u);
  EXPECT_EQ(caught.calls + caught.sleeps, 0u);
  EXPECT_EQ(caught.faults, 0);
}

TEST_F(LoopPath, ASleepIsOneSystemCallAtMost) {
  const Caught caught = caught_at([](rtm_loop* loop, int jobs) {
    for (int i = 0; i < jobs; ++i) {
      rtm_loop_sleep(loop);
      rtm_loop_done(loop);
    }
  });
  EXPECT_EQ(caught.allocations, 0u);
  EXPECT_EQ(caught.calls, 0u);
  EXPECT_GT(caught.sleeps, 0u);
  EXPECT_LE(caught.sleeps, 300u);
  EXPECT_EQ(caught.faults, 0);
}

}  // namespace
}  // namespace rtmeter
