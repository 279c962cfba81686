// A probe ends within its stated time whatever its middleware ignores.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <unistd.h>

#include "probe_process.hpp"
#include "system/limits.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

constexpr std::int64_t kForever = 1'000'000;

Json hanging(const char* how, Json::Object more = {}) {
  more.insert(more.end(),
              {{"role", "client"}, {"loss_timeout_ns", 500'000'000}, {"options", option("hang", how)}});
  return probe_config("roundtrip", kForever, std::move(more));
}

// Waits until it does. The probe is killed after a minute, and then this ends too.
void until_it_hangs(const ProbeProcess& probe) {
  for (int i = 0; i < 6'000 && probe.errors().find("hangs") == std::string::npos; ++i) usleep(10'000);
}

std::string message_of(const Json& error) {
  return error.is_null() ? "" : error.find("message")->as_string();
}

TEST(Ending, OfAStartThatHangs) {
  const Folder folder;
  ProbeProcess probe(RTMETER_PROBE, folder, "probe", hanging("start"));
  until_it_hangs(probe);
  probe.interrupt();
  const Json error = probe.next_event("error");
  EXPECT_NE(message_of(error).find("has not got ready for 5 s"), std::string::npos) << error.dump();
  EXPECT_EQ(error.find("field")->as_string(), "middleware");
  const Json end = probe.next_event("end");
  EXPECT_EQ(probe.wait(), 1);
  ASSERT_FALSE(end.is_null());
  EXPECT_EQ(end.find("outcome")->as_string(), "failed");
  EXPECT_EQ(end.find("rows")->as_int(), 0);
}

TEST(Ending, OfAMiddlewareThatDoesNotEnd) {
  const Folder folder;
  ProbeProcess probe(RTMETER_PROBE, folder, "probe", hanging("stop"));
  ASSERT_FALSE(probe.next_event("progress").is_null());
  probe.interrupt();
  const Json end = probe.next_event("end");
  EXPECT_EQ(probe.wait(), 4) << probe.errors();
  EXPECT_EQ(end.find("outcome")->as_string(), "interrupted");
  EXPECT_NE(probe.errors().find("loopback does not end"), std::string::npos);
}

// The run has ended, and is told, long before the interrupt that ended its wait returns.
TEST(Ending, OfAMiddlewareThatIsStillBeingInterrupted) {
  const Folder folder;
  Json config = hanging("interrupt");
  config["period_ns"] = 3'600'000'000'000;
  config["samples"] = 10;
  ProbeProcess probe(RTMETER_PROBE, folder, "probe", config);
  ASSERT_FALSE(probe.next_event("progress").is_null());
  probe.interrupt();
  const Json end = probe.next_event("end");
  EXPECT_EQ(probe.wait(), 4) << probe.errors();
  EXPECT_EQ(end.find("outcome")->as_string(), "interrupted");
  EXPECT_EQ(probe.errors(), "");
}

// Nobody asks: no release is settled for thirty seconds and what one may take.
TEST(Ending, OfARunThatSettlesNothing) {
  const Folder folder;
  ProbeProcess probe(RTMETER_PROBE, folder, "probe", hanging("publish"), {"RTMETER_TEST_FAST=yes"});
  const Json error = probe.next_event("error");
  EXPECT_EQ(message_of(error), "no release was settled for 30 s") << error.dump();
  const Json end = probe.next_event("end");
  EXPECT_EQ(probe.wait(), 1);
  ASSERT_FALSE(end.is_null());
  EXPECT_EQ(end.find("outcome")->as_string(), "failed");
}

const Json* thread_of(const Json& event, const std::string& name) {
  for (const Json& thread : event.find("threads")->as_array())
    if (thread.find("name")->as_string() == name) return &thread;
  ADD_FAILURE() << "no thread " << name << " in " << event.dump();
  return nullptr;
}

std::string scheduling_of(const Json& event, const std::string& name) {
  const Json* thread = thread_of(event, name);
  if (thread == nullptr) return "";
  const std::string policy = thread->find("policy")->as_string();
  return policy == "fifo" ? policy + ":" + std::to_string(thread->find("priority")->as_int()) : policy;
}

// Everything on one CPU, which the measured thread keeps busy at real-time priority for good.
TEST(Ending, OfAThreadThatHogsTheOnlyCpuAtRealTimePriority) {
  if (!has_capability(CAP_SYS_NICE)) GTEST_SKIP() << "needs CAP_SYS_NICE";
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
  const Folder folder;
  const Json fifo(Json::Object{{"policy", "fifo"}, {"priority", 50}});
  ProbeProcess probe(RTMETER_PROBE, folder, "probe", hanging("spin", {{"scheduling", fifo}}));
  sched_setaffinity(0, sizeof before, &before);
  const Json ready = probe.next_event("ready");
  if (ready.is_null()) GTEST_SKIP() << "no real-time policy here: " << probe.errors();
  EXPECT_EQ(scheduling_of(ready, "rtm-guard"), "fifo:99");
  for (const char* helper : {"rtm-supervisor", "rtm-writer"})
    EXPECT_EQ(scheduling_of(ready, helper), "other");
  EXPECT_EQ(thread_of(ready, "rtm-guard")->find("role")->as_string(), "service");
  until_it_hangs(probe);
  probe.interrupt();
  const Json error = probe.next_event("error");
  EXPECT_NE(message_of(error).find("has not come back"), std::string::npos) << error.dump();
  const Json end = probe.next_event("end");
  EXPECT_EQ(probe.wait(), 1);
  ASSERT_FALSE(end.is_null());
  EXPECT_GT(end.find("rows")->as_int(), 0);
  EXPECT_EQ(scheduling_of(end, "rtm-supervisor"), "fifo:99");
}

}  // namespace
}  // namespace rtmeter
