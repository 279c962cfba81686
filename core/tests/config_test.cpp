#include "measure/config.hpp"

#include <gtest/gtest.h>

#include <string>

#include "child.hpp"

namespace rtmeter {
namespace {

using testing_help::outcome_of;

// What becomes of a wake-up's config with one entry more.
std::string outcome(const std::string& entry) {
  const std::string text =
      R"({"version": 1, "measurement": "wakeup", "log": "x", "period_ns": 1000, "samples": 1, )" + entry +
      "}";
  return outcome_of([&] { config_from_json(Json::parse(text, "config")); });
}

TEST(Config, TimerSlackIsForThreadsThatHaveOne) {
  const std::string slack = R"("timer_slack_ns": 1)",
                    fifo = R"("scheduling": {"policy": "fifo", "priority": 1})";
  EXPECT_EQ(outcome(slack), "ok");
  EXPECT_CONTAINS(outcome(slack + ", " + fifo), "timer_slack_ns = 1: means nothing");
  EXPECT_EQ(outcome(slack + ", " + fifo + R"(, "apply": "after_init")"), "ok");
  EXPECT_CONTAINS(outcome(R"("timer_slack_ns": 0)"), "must be an integer from 1 to 1000000000");
}

TEST(Config, StampsOfTheKernelAreForRoundTrips) {
  EXPECT_CONTAINS(outcome(R"("kernel_stamps": true)"), "kernel_stamps = true: means nothing for wakeup");
  EXPECT_EQ(outcome(R"("kernel_stamps": false)"), "ok");
}

TEST(Config, ASharedClockIsForTwoEnds) {
  EXPECT_CONTAINS(outcome(R"("shared_clock": "tai")"), "shared_clock = tai: means nothing for wakeup");
  EXPECT_CONTAINS(outcome(R"("shared_clock": 1)"), "shared_clock = 1: must be a string");
}

TEST(Config, CpusAreNumbersThatACpuCanHave) {
  EXPECT_EQ(outcome(R"("cpus": [0, 8191])"), "ok");
  for (const char* value : {"[4294967296]", "[-1]", "[8192]", "[0.5]", "[\"1\"]", "1"})
    EXPECT_CONTAINS(outcome(std::string("\"cpus\": ") + value), "must be a list of CPU numbers") << value;
  EXPECT_CONTAINS(outcome(R"("cpus": [])"), "cpus = []: names no CPU");
}

TEST(Config, AnOptionThatIsNoTextIsNamed) {
  EXPECT_CONTAINS(outcome(R"("options": {"timer": 1})"), "options.timer = 1: must be a string");
  EXPECT_CONTAINS(outcome(R"("options": "timer")"), "options = \"timer\": is not a JSON object");
}

std::string outcome(const std::string& measurement, const std::string& entry) {
  const std::string text = R"({"version": 1, "log": "x", "period_ns": 1000, "samples": 1, "measurement": )" +
                           measurement + ", " + entry + "}";
  return outcome_of([&] { config_from_json(Json::parse(text, "config")); });
}

TEST(Config, TheDeadlinePolicyHasOneThread) {
  const std::string policy =
      R"("apply": "after_init", )"
      R"("scheduling": {"policy": "deadline", "runtime_ns": 1, "deadline_ns": 2, "period_ns": 3})";
  const std::string client = policy + R"(, "loss_timeout_ns": 1, "role": "client", )";
  EXPECT_EQ(outcome(policy), "ok");
  EXPECT_EQ(outcome(R"("roundtrip")", client + R"("receive": "spin_once")"), "ok");
  EXPECT_CONTAINS(outcome(R"("roundtrip")", client + R"("receive": "spin")"), "receive = spin: needs");
  EXPECT_CONTAINS(outcome(R"("roundtrip")", client + R"("in_flight": "open")"), "in_flight = open: needs");
}

TEST(Config, AProcessBesideARoundTripSaysWhatItIs) {
  const auto trip = [](const std::string& role, const std::string& beside) {
    return outcome(R"("roundtrip")",
                   R"("loss_timeout_ns": 1, "role": ")" + role + R"(", "beside": )" + beside);
  };
  const std::string second = R"({"as": "subscriber", "number": 2})", three = R"({"subscribers": 3})";
  EXPECT_EQ(trip("beside", second), "ok");
  EXPECT_EQ(trip("client", three), "ok");
  EXPECT_EQ(trip("beside", R"({"as": "publisher", "number": 2})"), "ok");
  EXPECT_EQ(trip("server", R"({"publishers": 3})"), "ok");
  EXPECT_CONTAINS(trip("server", R"({"publishers": 0})"), "beside.publishers = 0: must be");
  EXPECT_EQ(trip("server", three), "ok");
  EXPECT_CONTAINS(trip("client", second), "role = client: does not fit");
  EXPECT_CONTAINS(trip("beside", three), "role = beside: does not fit");
  EXPECT_CONTAINS(trip("beside", R"({"as": "subscriber"})"), "role = beside: does not fit");
  EXPECT_CONTAINS(trip("beside", "null"), "beside = : is missing");
  EXPECT_CONTAINS(trip("client", R"({"subscribers": 0})"), "beside.subscribers = 0: must be");
  EXPECT_CONTAINS(outcome(R"("cycle")", R"("loss_timeout_ns": 1, "beside": )" + three),
                  "beside = {}: means nothing for cycle");
}

TEST(Config, ADiscoverySaysWhoTakesPartAndEndsBeforeItStartsAnew) {
  const auto discovery = [](const std::string& entry) {
    return outcome(R"("discovery")", R"("loss_timeout_ns": 999, )" + entry);
  };
  const std::string two = R"("discovery": {"participants": 2})";
  EXPECT_EQ(discovery(two), "ok");
  EXPECT_EQ(discovery(R"("discovery": {"participants": 3, "participant": 2, "others": "present"})"), "ok");
  EXPECT_CONTAINS(discovery(R"("cpus": [0])"), "discovery = : is missing");
  EXPECT_CONTAINS(outcome(two), "discovery = {}: means nothing");
  EXPECT_CONTAINS(discovery(R"("discovery": {"participants": 1})"), "discovery.participants = 1: must be");
  EXPECT_CONTAINS(discovery(R"("discovery": {"participants": 3, "participant": 3})"),
                  "discovery.participant = 3: must be an integer from 0 to 2");
  EXPECT_CONTAINS(discovery(R"("discovery": {"participants": 2, "others": "few"})"),
                  "is not one of cold, present");
  EXPECT_CONTAINS(discovery(R"("discovery": {"participants": 2, "pair": 1})"), "discovery.pair");
  EXPECT_CONTAINS(outcome(R"("discovery")", R"("loss_timeout_ns": 1000, )" + two),
                  "loss_timeout_ns = 1000: is no shorter than the period");
  EXPECT_CONTAINS(outcome(R"("discovery")", two), "loss_timeout_ns = : is missing");
  EXPECT_CONTAINS(discovery(two + R"(, "apply": "after_init")"), "apply = after_init: cannot be had");
  EXPECT_CONTAINS(discovery(two + R"(, "child_cpus": [0])"), "child_cpus = : cannot be had");
}

TEST(Config, ASleepLiesLessThanAPeriodBehindATimer) {
  const std::string timer = R"("timer", "drive": "sleep_then_spin_some")";
  EXPECT_EQ(outcome(timer, R"("sleep_offset_ns": 0)"), "ok");
  EXPECT_EQ(outcome(timer, R"("sleep_offset_ns": 999)"), "ok");
  EXPECT_CONTAINS(outcome(timer, R"("sleep_offset_ns": 1000)"), "must be an integer from 0 to 999");
  EXPECT_CONTAINS(outcome(R"("timer", "drive": "spin")", R"("sleep_offset_ns": 1)"),
                  "sleep_offset_ns = 1: means nothing");
  EXPECT_CONTAINS(
      outcome(R"("cycle", "drive": "sleep_then_spin_some", "loss_timeout_ns": 1)", R"("sleep_offset_ns": 1)"),
      "sleep_offset_ns = 1: means nothing");
}

// A chain records nothing between the releases of a slow stage, and while it waits for what is under way.
TEST(Config, SaysHowLongARunMayHaveNothingToRecord) {
  Config config;
  config.loss_timeout_ns = 5;
  config.period_ns = 100;
  EXPECT_EQ(config.quiet_ns(), 5 + 1'100);
  config.chain = ChainConfig{};
  config.chain->drain_ns = 7;
  config.chain->stages.resize(2);
  config.chain->stages[0].period_ns = 1'000;
  config.chain->stages[1].offset_ns = 20'000;
  EXPECT_EQ(config.quiet_ns(), 20'000 + 7);
  config.chain->stages[0].period_ns = 2'000;
  EXPECT_EQ(config.quiet_ns(), 22'000 + 7);
}

TEST(Config, AChainsSourceEndsWithinAYear) {
  const auto source = [](const char* samples) {
    return outcome(R"("chain")",
                   std::string(R"("role": "client", "chain": {"stages": [{"name": "s", "samples": )") +
                       samples + R"(, "period_ns": 1000000000}]})");
  };
  EXPECT_EQ(source("31622400"), "ok");
  EXPECT_CONTAINS(source("31622401"), "chain.stages[0].samples = 31622401: takes longer than a year");
}

TEST(Config, NothingIsLostBeforeItsDeadline) {
  EXPECT_EQ(outcome(R"("cycle")", R"("loss_timeout_ns": 2, "deadline_ns": 2)"), "ok");
  EXPECT_CONTAINS(outcome(R"("cycle")", R"("loss_timeout_ns": 1, "deadline_ns": 2)"),
                  "loss_timeout_ns = 1: is shorter than the deadline");
}

TEST(Config, ComponentsAreOfACycle) {
  const std::string cycle = R"("cycle", "loss_timeout_ns": 1)";
  for (const char* shape : {"one_thread", "two_threads"})
    EXPECT_EQ(outcome(cycle, std::string(R"("components": ")") + shape + '"'), "ok");
  EXPECT_CONTAINS(outcome(cycle, R"("components": "many")"), "is not one of one_thread, two_threads");
  EXPECT_CONTAINS(outcome(R"("wakeup")", R"("components": "one_thread")"), "means nothing for wakeup");
}

}  // namespace
}  // namespace rtmeter
