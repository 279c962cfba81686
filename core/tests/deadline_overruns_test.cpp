// Overruns of a SCHED_DEADLINE thread, as the kernel signals them; and timer slack.
#include "system/deadline_overruns.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "child.hpp"
#include "emulated.hpp"
#include "system/scheduling.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;
using std::chrono::steady_clock;

const Scheduling kOverrun{.policy = Scheduling::Policy::deadline,
                          .runtime_ns = 500'000,
                          .deadline_ns = 5'000'000,
                          .period_ns = 5'000'000};

// Works without a pause until an overrun was counted, for half a minute at the most.
std::int64_t overruns_of_work() {
  DeadlineOverruns overruns({});
  set_scheduling(0, kOverrun, "scheduling");
  ask_for_overrun_signal("scheduling");
  const auto give_up = steady_clock::now() + std::chrono::seconds(30);
  while (overruns.count() == 0 && steady_clock::now() < give_up) {
  }
  return overruns.count();
}

TEST(DeadlineOverruns, AreCountedWhereWorkTakesMoreThanTheRuntime) {
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  NEEDS_EVERY_CPU();
  const std::string said = in_child([] { return std::to_string(overruns_of_work()); });
  EXPECT_GE(std::atoll(said.c_str()), 1) << said;
}

TEST(DeadlineOverruns, AreNoneWhereTheThreadSleeps) {
  SKIP_UNDER_EMULATION();
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  NEEDS_EVERY_CPU();
  EXPECT_EQ(in_child([] {
              DeadlineOverruns overruns({});
              set_scheduling(0, kOverrun, "scheduling");
              ask_for_overrun_signal("scheduling");
              for (int k = 0; k < 20; ++k) usleep(2000);
              return std::to_string(overruns.count());
            }),
            "0");
}

TEST(DeadlineOverruns, ASignalOfSomebodyElseIsNone) {
  EXPECT_EQ(in_child([] {
              DeadlineOverruns overruns({});
              for (int k = 0; k < 3; ++k) kill(getpid(), SIGXCPU);
              sigset_t pending;
              do sigpending(&pending);
              while (sigismember(&pending, SIGXCPU) == 1);
              return std::to_string(overruns.count());
            }),
            "0");
}

TEST(DeadlineOverruns, AreAskedForOfADeadlinePolicyOnly) {
  EXPECT_CONTAINS(in_child([] { return outcome_of([] { ask_for_overrun_signal("scheduling"); }); }),
                  "scheduling = other: ");
}

TEST(TimerSlack, IsThatOfTheThreadAndOfThoseThatItCreates) {
  EXPECT_EQ(in_child([] {
              set_timer_slack(1234, "timer_slack_ns");
              int inherited = 0;
              std::thread([&] { inherited = prctl(PR_GET_TIMERSLACK); }).join();
              return std::to_string(prctl(PR_GET_TIMERSLACK)) + " " + std::to_string(inherited);
            }),
            "1234 1234");
}

TEST(TimerSlack, OneThatDidNotTakeIsAnError) {  // 0 stands for the default
  EXPECT_CONTAINS(in_child([] { return outcome_of([] { set_timer_slack(0, "timer_slack_ns"); }); }),
                  "timer_slack_ns = 0: the kernel reports ");
}

}  // namespace
}  // namespace rtmeter
