// The probe's service threads keep to the CPUs that the user gave the process.
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "probe_process.hpp"
#include "system/limits.hpp"
#include "system/service_thread.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;
using Cpus = std::vector<int>;

TEST(ServiceCpus, AreThoseGivenButTheAvoided) {
  EXPECT_EQ(service_cpus({0, 1, 2, 3}, {1, 3}), (Cpus{0, 2}));
  EXPECT_EQ(service_cpus({2, 3}, {0, 1}), (Cpus{2, 3}));
  EXPECT_EQ(service_cpus({2, 3}, {}), (Cpus{2, 3}));
  EXPECT_EQ(service_cpus({2}, {2}), (Cpus{2}));  // nothing else is left
}

Cpus own_cpus() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  Cpus cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

void take_cpus(const Cpus& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

// By name, as the kernel tells it of a probe that measures.
std::map<std::string, std::string> cpus_of_threads(const Cpus& given, const Cpus& measured) {
  Json::Object more{{"role", "client"},
                    {"loss_timeout_ns", 500'000'000},
                    {"second_topic", Json(Json::Object{{"place", "same_node"}})}};
  Json list = Json::array();
  for (const int cpu : measured) list.push(cpu);
  if (!measured.empty()) more.emplace_back("cpus", list);
  const Cpus before = own_cpus();
  const Folder folder;
  take_cpus(given);
  ProbeProcess probe(RTMETER_PROBE, folder, "probe", probe_config("roundtrip", 1'000'000, std::move(more)));
  take_cpus(before);
  const Json ready = probe.next_event("ready");
  EXPECT_FALSE(ready.is_null()) << probe.errors();
  if (ready.is_null()) return {};
  std::map<std::string, std::string> found;
  const std::string tasks = "/proc/" + std::to_string(ready.find("pid")->as_int()) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks))
    found[status_value(task.path().string() + "/status", "Name").value_or("?")] =
        status_value(task.path().string() + "/status", "Cpus_allowed_list").value_or("?");
  return found;
}

constexpr const char* kServices[] = {"rtm-writer", "rtm-supervisor", "rtm-guard", "rtm-second"};

TEST(ServiceCpus, AreThoseOfTheProcess) {
  const Cpus all = own_cpus();
  if (all.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const std::string first = std::to_string(all[0]), second = std::to_string(all[1]);
  auto found = cpus_of_threads({all[0]}, {});
  for (const char* name : kServices) EXPECT_EQ(found[name], first) << name;
  found = cpus_of_threads({all[0], all[1]}, {all[1]});
  for (const char* name : kServices) EXPECT_EQ(found[name], first) << name << " beside the measured thread";
  found = cpus_of_threads({all[1]}, {all[1]});
  for (const char* name : kServices) EXPECT_EQ(found[name], second) << name << " where nothing else is left";
}

}  // namespace
}  // namespace rtmeter
