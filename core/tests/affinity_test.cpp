#include "system/affinity.hpp"

#include <linux/capability.h>
#include <sched.h>

#include "child.hpp"
#include "control_group_fixture.hpp"
#include "system/scheduling.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

std::string outcome(const std::vector<int>& cpus) {
  return outcome_of([&] { set_affinity(0, cpus); });
}

TEST(Affinity, EachAllowedCpuTakes) {
  for (const int cpu : get_affinity(0)) {
    EXPECT_EQ(in_child([&] {
                set_affinity(0, {cpu});
                return cpu_list_text(get_affinity(0)) + " on " + std::to_string(sched_getcpu());
              }),
              std::to_string(cpu) + " on " + std::to_string(cpu));
  }
}

TEST(Affinity, OrderAndRepetitionDoNotMatter) {
  std::vector<int> cpus = get_affinity(0);
  const auto sorted = cpus;
  cpus.insert(cpus.begin(), cpus.back());
  EXPECT_EQ(in_child([&] { return outcome(cpus) + " " + cpu_list_text(get_affinity(0)); }),
            "ok " + cpu_list_text(sorted));
}

TEST(Affinity, ACpuThatDoesNotExistIsNamed) {
  const std::string all = cpu_list_text(online_cpus());
  for (const int cpu : {possible_cpus().back() + 1, 8191, 100'000, -1}) {
    const std::string said = in_child([&] { return outcome({0, cpu}); });
    EXPECT_CONTAINS(said, "CPU " + std::to_string(cpu) + " does not exist; this machine has " + all);
    EXPECT_CONTAINS(said, "choose among " + all);
  }
}

TEST(Affinity, NoCpuIsRefused) { EXPECT_CONTAINS(outcome({}), "no CPU is given"); }

TEST(Affinity, AThreadThatIsGoneIsNamed) {
  EXPECT_CONTAINS(outcome_of([] { set_affinity(1 << 30, {get_affinity(0).front()}); }), "No such process");
}

TEST(Affinity, ADeadlineThreadCannotBeConfined) {
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  NEEDS_EVERY_CPU();
  const auto online = online_cpus();
  if (online.size() < 2) GTEST_SKIP() << "needs two CPUs";
  if (read_text("/proc/sys/kernel/sched_rt_runtime_us") == "-1") GTEST_SKIP() << "admission control is off";
  const std::string said = in_child([&] {
    set_scheduling(0,
                   {.policy = Scheduling::Policy::deadline,
                    .runtime_ns = 200'000,
                    .deadline_ns = 1'000'000,
                    .period_ns = 1'000'000},
                   "scheduling");
    return outcome({online.front()}) + " [" + cpu_list_text(get_affinity(0)) + "]";
  });
  EXPECT_CONTAINS(said, "cpus = " + std::to_string(online.front()) + ": a SCHED_DEADLINE thread may not");
  EXPECT_CONTAINS(said, "[" + cpu_list_text(online) + "]");
}

// One CPU outside leaves nothing, or less than was asked for: the kernel reports only the first.
TEST(Affinity, ACpuOutsideTheCpusetIsNamed) {
  const auto online = online_cpus();
  if (online.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const OwnControlGroup group("cpuset");
  if (!group.problem.empty()) GTEST_SKIP() << group.problem;
  const std::string inside = std::to_string(online[0]), outside = std::to_string(online[1]);
  ASSERT_TRUE(group.set("cpuset.cpus", inside) && group.set("cpuset.mems", "0"));
  const std::string said = in_child([&] {
    if (!group.enter()) return std::string("could not enter the group");
    return outcome({online[1]}) + "\n" + outcome({online[0], online[1]}) + "\n" + outcome({online[0]});
  });
  const auto second = said.find('\n');
  for (const std::string& line : {said.substr(0, second), said.substr(second + 1)}) {
    EXPECT_CONTAINS(line, "CPU " + outside + " is outside the process's cpuset /rtmeter-test-");
    EXPECT_CONTAINS(line, "effective_cpus is " + inside);
    EXPECT_CONTAINS(line, "choose among " + inside);
  }
  EXPECT_EQ(said.substr(said.rfind('\n') + 1), "ok");
}

}  // namespace
}  // namespace rtmeter
