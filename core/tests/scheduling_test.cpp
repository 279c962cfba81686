// Settings that take. Each is read back here by other calls than the code under test makes.
#include "system/scheduling.hpp"

#include <linux/capability.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "child.hpp"

namespace rtmeter {
namespace {

using testing_help::in_child;
using Policy = Scheduling::Policy;

constexpr Scheduling kDeadline{
    .policy = Policy::deadline, .runtime_ns = 200'000, .deadline_ns = 1'000'000, .period_ns = 2'000'000};

// What the C library says of the calling thread, e.g. "1:80" for SCHED_FIFO at 80.
std::string policy_now() {
  sched_param parameters{};
  sched_getparam(0, &parameters);
  return std::to_string(sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) + ":" +
         std::to_string(parameters.sched_priority);
}

TEST(SetScheduling, FifoAndRoundRobinTake) {
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  EXPECT_EQ(in_child([] {
              set_scheduling(0, {.policy = Policy::fifo, .priority = 80}, "scheduling");
              const std::string fifo = policy_now() + " " + to_string(get_scheduling(0));
              set_scheduling(0, {.policy = Policy::rr, .priority = 1}, "scheduling");
              return fifo + " " + policy_now() + " " + to_string(get_scheduling(0));
            }),
            "1:80 fifo:80 2:1 rr:1");
}

TEST(SetScheduling, OtherTakesAfterFifoAndKeepsTheNiceValue) {
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  EXPECT_EQ(in_child([] {
              setpriority(PRIO_PROCESS, 0, 7);
              set_scheduling(0, {.policy = Policy::fifo, .priority = 10}, "scheduling");
              set_scheduling(0, {}, "scheduling");
              return policy_now() + " nice " + std::to_string(getpriority(PRIO_PROCESS, 0));
            }),
            "0:0 nice 7");
}

TEST(SetScheduling, OtherTakesWithoutPrivilege) {
  EXPECT_EQ(in_child([] {
              setpriority(PRIO_PROCESS, 0, 5);
              testing_help::drop_privileges();
              set_scheduling(0, {}, "scheduling");
              return policy_now();
            }),
            "0:0");
}

TEST(SetScheduling, DeadlineTakesAndTheThreadCanStillStartOthers) {
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  NEEDS_EVERY_CPU();
  EXPECT_EQ(in_child([] {
              set_scheduling(0, kDeadline, "scheduling");
              const std::string own = policy_now() + " " + to_string(get_scheduling(0));
              std::string others;
              std::thread([&] { others = policy_now(); }).join();
              return own + ", its thread " + others;
            }),
            "6:0 deadline:200us/1ms/2ms, its thread 0:0");
}

TEST(SetScheduling, AnotherThreadIsSetByItsId) {
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  EXPECT_EQ(in_child([] {
              std::atomic<int> tid{0};
              std::atomic<bool> done{false};
              std::string seen;
              std::thread other([&] {
                tid = gettid();
                while (!done) usleep(1000);
                seen = policy_now();
              });
              while (tid == 0) usleep(1000);
              set_scheduling(tid, {.policy = Policy::rr, .priority = 3}, "child_threads");
              done = true;
              other.join();
              return seen + ", caller " + policy_now();
            }),
            "2:3, caller 0:0");
}

TEST(SetScheduling, ARealTimeLimitIsEnough) {
  NEEDS_CAPABILITY(CAP_SYS_RESOURCE);
  EXPECT_EQ(in_child([] {
              testing_help::limit(RLIMIT_RTPRIO, 50);
              testing_help::drop_privileges();
              set_scheduling(0, {.policy = Policy::fifo, .priority = 50}, "scheduling");
              return policy_now();
            }),
            "1:50");
}

}  // namespace
}  // namespace rtmeter
