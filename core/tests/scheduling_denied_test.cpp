// Settings that do not take: the failure names the field, the value, the limit with its present value,
// and what raises it; and the thread stays as it was.
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <future>
#include <thread>

#include "child.hpp"
#include "control_group_fixture.hpp"
#include "system/affinity.hpp"
#include "system/scheduling.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;
using Policy = Scheduling::Policy;

constexpr Scheduling kFifo{.policy = Policy::fifo, .priority = 80};
constexpr Scheduling kDenied{
    .policy = Policy::deadline, .runtime_ns = 200'000, .deadline_ns = 1'000'000, .period_ns = 1'000'000};

std::string outcome(const Scheduling& wanted) {
  const std::string said = outcome_of([&] { set_scheduling(0, wanted, "scheduling"); });
  return said + (get_scheduling(0) == Scheduling{} ? " [still other]" : " [changed]");
}

std::string outcome_unprivileged(const Scheduling& wanted, rlim_t priority_limit) {
  return in_child([&] {
    limit(RLIMIT_RTPRIO, priority_limit);
    drop_privileges();
    return outcome(wanted);
  });
}

TEST(SchedulingDenied, FifoWithoutPrivilegeNamesTheLimit) {
  const std::string said = outcome_unprivileged(kFifo, 0);
  EXPECT_CONTAINS(said, "scheduling = fifo:80: ");
  EXPECT_CONTAINS(said, "RLIMIT_RTPRIO is 0");
  EXPECT_CONTAINS(said, "CAP_SYS_NICE");
  EXPECT_CONTAINS(said, "prlimit --pid $$ --rtprio=99");
  EXPECT_CONTAINS(said, "/etc/security/limits.conf");
  EXPECT_CONTAINS(said, "[still other]");
}

TEST(SchedulingDenied, PriorityAboveTheLimitNamesTheLimit) {
  NEEDS_CAPABILITY(CAP_SYS_RESOURCE);
  const std::string said = outcome_unprivileged({.policy = Policy::rr, .priority = 51}, 50);
  EXPECT_CONTAINS(said, "scheduling = rr:51: ");
  EXPECT_CONTAINS(said, "RLIMIT_RTPRIO is 50, below the priority 51");
  EXPECT_CONTAINS(said, "[still other]");
}

TEST(SchedulingDenied, ACapabilityOfAUserNamespaceDoesNotCount) {
  const std::string said = in_child([] {
    limit(RLIMIT_RTPRIO, 0);
    drop_privileges();
    if (unshare(CLONE_NEWUSER) != 0) return std::string("skip");
    return outcome(kFifo);
  });
  if (said == "skip") GTEST_SKIP() << "needs user namespaces for unprivileged processes";
  EXPECT_CONTAINS(said, "RLIMIT_RTPRIO is 0");
  EXPECT_CONTAINS(said, "[still other]");
}

TEST(SchedulingDenied, DeadlineWithoutPrivilegeNamesTheCapability) {
  const std::string said = outcome_unprivileged(kDenied, 0);
  EXPECT_CONTAINS(said, "scheduling = deadline:200us/1ms/1ms: ");
  EXPECT_CONTAINS(said, "needs CAP_SYS_NICE");
  EXPECT_CONTAINS(said, "cap_sys_nice+ep");
  EXPECT_CONTAINS(said, "[still other]");
}

TEST(SchedulingDenied, DeadlineOnSomeCpusNamesTheAffinity) {
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  const auto online = online_cpus();
  if (online.size() < 2) GTEST_SKIP() << "needs two CPUs";
  if (read_text("/proc/sys/kernel/sched_rt_runtime_us") == "-1") GTEST_SKIP() << "admission control is off";
  const std::string said = in_child([&] {
    set_affinity(0, {online.front()});
    return outcome(kDenied);
  });
  EXPECT_CONTAINS(said, "it is on " + std::to_string(online.front()) + " of " + cpu_list_text(online));
  EXPECT_CONTAINS(said, "leave `cpus` out");
  EXPECT_CONTAINS(said, "sched_rt_runtime_us=-1");
  EXPECT_CONTAINS(said, "[still other]");
}

TEST(SchedulingDenied, DeadlineBeyondTheBandwidthNamesAdmissionControl) {
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  NEEDS_EVERY_CPU();
  if (read_text("/proc/sys/kernel/sched_rt_runtime_us") == "-1") GTEST_SKIP() << "admission control is off";
  // Threads that sleep, and would take 99 % of a CPU each if they ran.
  const std::string said = in_child([] {
    constexpr Scheduling kGreedy{
        .policy = Policy::deadline, .runtime_ns = 990'000, .deadline_ns = 1'000'000, .period_ns = 1'000'000};
    std::string last = "ok";
    for (std::size_t i = 0; i <= online_cpus().size() && last == "ok"; ++i) {
      std::promise<std::string> taken;
      auto outcome_there = taken.get_future();
      std::thread([&] {
        taken.set_value(outcome_of([&] { set_scheduling(0, kGreedy, "scheduling"); }));
        pause();
      }).detach();
      last = outcome_there.get();
    }
    return last;
  });
  EXPECT_CONTAINS(said, "scheduling = deadline:990us/1ms/1ms: admission control: its 99.0 % of a CPU");
  EXPECT_CONTAINS(said, read_text("/proc/sys/kernel/sched_rt_runtime_us").value_or("?") + " us of every");
  EXPECT_CONTAINS(said, "smaller runtime");
}

TEST(SchedulingDenied, DeadlineOutsideTheKernelsRangeNamesIt) {
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  const std::string said = in_child([] {
    return outcome(
        {.policy = Policy::deadline, .runtime_ns = 500, .deadline_ns = 1'000'000, .period_ns = 1'000'000});
  });
  EXPECT_CONTAINS(said, "at least 1024 ns");
  EXPECT_CONTAINS(said, "[still other]");
}

TEST(SchedulingDenied, AGroupWithoutRealTimeTimeIsNamed) {
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  const OwnControlGroup group("cpu");
  if (!group.problem.empty()) GTEST_SKIP() << group.problem;
  if (!group.set("cpu.rt_runtime_us", "0")) GTEST_SKIP() << "needs a kernel with CONFIG_RT_GROUP_SCHED";
  const std::string said = in_child([&] {
    if (!group.enter()) return std::string("could not enter the group");
    const std::string inside = outcome(kFifo);
    if (!group.leave()) return std::string("could not leave the group");
    return inside + outcome(kFifo);
  });
  EXPECT_CONTAINS(said, "scheduling = fifo:80: ");
  EXPECT_CONTAINS(said, "rtmeter-test-");
  EXPECT_CONTAINS(said, "cpu.rt_runtime_us is 0");
  EXPECT_CONTAINS(said, "sudo tee");
  EXPECT_CONTAINS(said, "[still other]ok [changed]");  // and the remedy works
}

TEST(SchedulingDenied, ASeccompFilterIsNamed) {
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  const std::string said = in_child([] {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setattr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{sizeof code / sizeof *code, code};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return std::string("skip");
    return outcome(kFifo);
  });
  if (said == "skip") GTEST_SKIP() << "needs seccomp filters";
  EXPECT_CONTAINS(said, "seccomp filter");
  EXPECT_CONTAINS(said, "[still other]");
}

TEST(SchedulingDenied, AThreadThatIsGoneIsNamed) {
  const std::string said = outcome_of([] { set_scheduling(1 << 30, {}, "child_threads"); });
  EXPECT_CONTAINS(said, "child_threads = other: sched_setattr failed: No such process");
}

TEST(SchedulingDenied, ImpossibleValuesNeverReachTheKernel) {
  EXPECT_CONTAINS(outcome({.policy = Policy::fifo, .priority = 100}), "between 1 and 99");
  EXPECT_CONTAINS(outcome({.policy = Policy::deadline}), "0 < runtime");
}

}  // namespace
}  // namespace rtmeter
