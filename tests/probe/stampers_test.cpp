// Threads of the middleware's that stamp are listed and checked, also those that came after `ready` and have
// ended since: an executor of several starts them in its spin.
#include <gtest/gtest.h>
#include <linux/capability.h>

#include <set>

#include "probe_process.hpp"
#include "system/limits.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;
using Names = std::set<std::string>;

constexpr std::int64_t kSamples = 20;

Json config_with(const char* executor, Json::Object more = {}) {
  for (const auto& [key, value] :
       Json::Object{{"role", "client"}, {"receive", "spin"}, {"loss_timeout_ns", 60'000'000'000}})
    more.emplace_back(key, value);
  more.emplace_back("options", option("executor", executor));
  return probe_config("roundtrip", kSamples, std::move(more));
}

Json fifo(int priority) { return Json(Json::Object{{"policy", "fifo"}, {"priority", priority}}); }

// "role policy" of each thread that stamps, by name.
Names stampers_in(const Json& event) {
  Names found;
  for (const Json& thread : event.find("threads")->as_array())
    if (thread.find("stamps")->as_bool())
      found.insert(thread.find("name")->as_string() + " " + thread.find("role")->as_string() + " " +
                   thread.find("policy")->as_string());
  return found;
}

TEST(Stampers, OfAnExecutorThatHasEndedAreListed) {
  const Folder folder;
  ProbeProcess probe(RTMETER_PROBE, folder, "probe", config_with("two"));
  const Json end = probe.next_event("end");
  EXPECT_EQ(probe.wait(), 0) << probe.errors();
  EXPECT_EQ(stampers_in(end), (Names{"loop-0 middleware other", "loop-1 middleware other"})) << end.dump();
  for (const Json& thread : end.find("threads")->as_array()) {
    if (!thread.find("stamps")->as_bool()) continue;  // one of the probe's own may just be ending
    EXPECT_FALSE(thread.find("cpus")->as_array().empty()) << thread.dump();
    EXPECT_FALSE(thread.find("timer_slack_ns")->is_null()) << thread.dump();
  }
}

TEST(Stampers, TheReceiverItselfIsAMeasuredThread) {
  const Folder folder;
  ProbeProcess probe(RTMETER_PROBE, folder, "probe", config_with("one"));
  const Json end = probe.next_event("end");
  EXPECT_EQ(probe.wait(), 0) << probe.errors();
  EXPECT_EQ(stampers_in(end), Names{"rtm-receiver measured other"}) << end.dump();
}

TEST(Stampers, OfAnExecutorThatHasEndedAreChecked) {
  if (!has_capability(CAP_SYS_NICE)) GTEST_SKIP() << "needs CAP_SYS_NICE";
  for (const char* executor : {"two", "strays"}) {
    SCOPED_TRACE(executor);
    const Folder folder;
    ProbeProcess probe(RTMETER_PROBE, folder, "probe",
                       config_with(executor, {{"scheduling", fifo(10)}, {"apply", "before_init"}}));
    if (executor == std::string("two")) {
      const Json end = probe.next_event("end");
      EXPECT_EQ(probe.wait(), 0) << end.dump();
      EXPECT_EQ(stampers_in(end), (Names{"loop-0 middleware fifo", "loop-1 middleware fifo"})) << end.dump();
      continue;
    }
    const Json error = probe.next_event("error");
    EXPECT_EQ(probe.wait(), 1) << probe.errors();
    ASSERT_FALSE(error.is_null()) << probe.errors();
    EXPECT_EQ(error.find("field")->as_string(), "scheduling");
    EXPECT_NE(error.dump().find("thread loop-"), std::string::npos) << error.dump();
  }
}

// A server whose listener is greeted and pinged that often, each time with a fault that only the listener
// has.
constexpr std::int64_t kPings = 100;

Json end_of_pinged_server(const char* listeners) {
  const Folder folder;
  Json config = probe_config("roundtrip", kSamples, {{"role", "server"}, {"receive", "listener"}});
  config["options"] = option("pings", std::to_string(kPings).c_str());
  config["options"]["listeners"] = listeners;
  ProbeProcess server(RTMETER_PROBE, folder, "server", config);
  EXPECT_TRUE(server.says("pinged")) << server.errors();
  server.interrupt();
  const Json end = server.next_event("end");
  EXPECT_EQ(server.wait(), 0) << server.errors();
  EXPECT_EQ(end.find("rows")->as_int(), kPings) << end.dump();
  return end;
}

TEST(Stampers, TheUsageOfAServerIsItsListeners) {
  const Json end = end_of_pinged_server("1");
  EXPECT_EQ(stampers_in(end), Names{"loop-0 middleware other"}) << end.dump();
  for (const auto& [name, count] : end.find("usage")->as_object()) EXPECT_FALSE(count.is_null()) << name;
  EXPECT_GE(end.find("usage")->find("minor_faults")->as_int(), kPings) << end.dump();
}

TEST(Stampers, TheUsageOfAServerWithSeveralListenersIsNotKnown) {
  const Json end = end_of_pinged_server("2");
  EXPECT_EQ(stampers_in(end).size(), 2U) << end.dump();
  for (const auto& [name, count] : end.find("usage")->as_object()) EXPECT_TRUE(count.is_null()) << name;
  EXPECT_NE(end.find("warnings")->dump().find("usage_unknown"), std::string::npos) << end.dump();
}

}  // namespace
}  // namespace rtmeter
