#include "system/machine.hpp"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <thread>

#include "child.hpp"
#include "system/clock_anchors.hpp"

namespace rtmeter {
namespace {

std::int64_t clock_ns(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

TEST(MachineFacts, AreTheSystemsOwn) {
  const Json facts = machine_facts();
  utsname names{};
  uname(&names);
  EXPECT_EQ(facts.find("hostname")->as_string(), names.nodename);
  EXPECT_EQ(facts.find("kernel")->as_string(), names.release);
  EXPECT_EQ(facts.find("kernel_version")->as_string(), names.version);
  EXPECT_EQ(facts.find("architecture")->as_string(), names.machine);
  EXPECT_EQ(facts.find("cpus_online")->as_int(), static_cast<std::int64_t>(online_cpus().size()));
  EXPECT_EQ(facts.find("boot_id")->as_string().size(), 36U);
  const std::string time_namespace = facts.find("time_namespace")->as_string();
  EXPECT_TRUE(time_namespace.empty() || time_namespace.starts_with("time:[")) << time_namespace;
  EXPECT_FALSE(facts.find("cpu_model")->as_string().empty());
}

TEST(MachineFacts, AVirtualMachineIsNamed) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "only x86 lists the hypervisor flag in /proc/cpuinfo to compare with";
#endif
  const bool flagged =
      status_value("/proc/cpuinfo", "flags").value_or("").find(" hypervisor") != std::string::npos;
  EXPECT_EQ(!machine_facts().find("virtual_machine")->is_null(), flagged);
}

TEST(MachineFacts, AnEmulatedProcessorIsNamed) {
#if defined(__x86_64__)
  GTEST_SKIP() << "this processor is the kernel's own";
#endif
  if (read_text("/proc/sys/kernel/arch") != "x86_64") GTEST_SKIP() << "the kernel is of no other processor";
  EXPECT_EQ(machine_facts().find("virtual_machine")->as_string(), "qemu-tcg");
}

TEST(ClockAnchors, LieBetweenTwoReadings) {
  const std::pair<const char*, clockid_t> clocks[] = {{"monotonic_ns", CLOCK_MONOTONIC},
                                                      {"monotonic_raw_ns", CLOCK_MONOTONIC_RAW},
                                                      {"boottime_ns", CLOCK_BOOTTIME}};
  std::vector<std::int64_t> before_ns;
  for (const auto& [key, id] : clocks) before_ns.push_back(clock_ns(id));
  const Json anchors = clock_anchors();
  for (std::size_t i = 0; i < before_ns.size(); ++i) {
    const std::int64_t anchor_ns = anchors.find(clocks[i].first)->as_int();
    EXPECT_LE(before_ns[i], anchor_ns) << clocks[i].first;
    EXPECT_LE(anchor_ns, clock_ns(clocks[i].second)) << clocks[i].first;
  }
  constexpr std::int64_t kYear2020_ns = 1'577'836'800'000'000'000;
  EXPECT_GT(anchors.find("realtime_ns")->as_int(), kYear2020_ns);
}

}  // namespace
}  // namespace rtmeter
