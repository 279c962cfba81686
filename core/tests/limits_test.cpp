#include "system/limits.hpp"

#include <linux/capability.h>

#include <algorithm>

#include "child.hpp"
#include "control_group_fixture.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

TEST(CpuList, IsReadAndWritten) {
  for (const char* text : {"0", "0-3", "0,2-3,7", "5,7,9", ""}) {
    EXPECT_EQ(cpu_list_text(parse_cpu_list(text)), text);
  }
  EXPECT_EQ(parse_cpu_list("0,2-4"), (std::vector<int>{0, 2, 3, 4}));
  EXPECT_EQ(parse_cpu_list("nonsense"), std::vector<int>{});
}

TEST(CpuList, ThisMachinesCpusArePossible) {
  const auto online = online_cpus(), possible = possible_cpus();
  EXPECT_FALSE(online.empty());
  EXPECT_TRUE(std::includes(possible.begin(), possible.end(), online.begin(), online.end()));
}

TEST(ReadText, WhatOpensButCannotBeReadIsNothing) {
  EXPECT_EQ(read_text("/proc/self"), std::nullopt) << "a directory";
  EXPECT_EQ(read_text("/proc/self/mem"), std::nullopt) << "nothing is mapped at 0";
  EXPECT_EQ(read_text("/dev/null"), "");
}

TEST(StatusValue, FindsWholeKeysOnly) {
  EXPECT_EQ(status_value("/proc/self/status", "Pid"), std::to_string(getpid()));
  EXPECT_EQ(status_value("/proc/self/status", "Pi"), std::nullopt);
  EXPECT_EQ(status_value("/proc/self/status", "NoSuchKey"), std::nullopt);
  EXPECT_EQ(status_value("/no/such/file", "Pid"), std::nullopt);
}

TEST(Capability, IsGoneAfterDroppingPrivileges) {
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  EXPECT_EQ(in_child([] {
              drop_privileges();
              return std::string(has_capability(CAP_SYS_NICE) ? "held" : "gone");
            }),
            "gone");
}

TEST(ResourceLimit, IsTold) {
  EXPECT_EQ(in_child([] {
              limit(RLIMIT_RTPRIO, 0);
              return limit_text(resource_limit(RLIMIT_RTPRIO)) + " " + limit_text(std::nullopt);
            }),
            "0 unlimited");
}

TEST(ControlGroup, IsWhereTheThreadWasPut) {
  const OwnControlGroup own("cpu");
  if (!own.problem.empty()) GTEST_SKIP() << own.problem;
  EXPECT_EQ(in_child([&] {
              if (!own.enter()) return std::string("could not enter the group");
              const auto found = control_group(0, "cpu");
              const bool member = read_text(found->directory + "/cgroup.procs") == std::to_string(getpid());
              const bool below = found->mount + found->name == found->directory;
              return std::string(member ? "member" : "no member") + (below ? " below" : " not below") +
                     " the mount";
            }),
            "member below the mount");
}

TEST(ControlGroup, AnUnknownControllerIsLookedForInTheUnifiedHierarchy) {
  const auto group = control_group(0, "no_such_controller");
  EXPECT_TRUE(!group || group->version == 2);
}

// Of the core's own error nothing is lost; of another's there is a text; of memory that is not there not even
// that.
TEST(AsFailure, SaysWhatTheUserSees) {
  EXPECT_EQ(as_failure(Failure("f", "v", "m", "r")).value(), "v");
  EXPECT_STREQ(as_failure(std::runtime_error("said")).what(), "said");
  const Failure memory = as_failure(std::bad_alloc());
  EXPECT_EQ(memory.field(), "memory");
  EXPECT_CONTAINS(memory.remedy(), "a smaller payload");
}

}  // namespace
}  // namespace rtmeter
