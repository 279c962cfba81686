// What a middleware throws ends no probe: it is an error of the setup, or a refused call that is counted and
// told. And options: each value that is declared can be given, and no other.
#include <gtest/gtest.h>

#include "probe_process.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

constexpr std::int64_t kReleases = 20;

struct Outcome {
  int exit_code = 0;
  Json ready, error, end;
};

Outcome run_with(const Json& options, const Json& offered = Json::array()) {
  const Folder folder;
  Json config = probe_config("cycle", kReleases, {{"options", options}, {"offered", offered}});
  config["warm_up"] = 0;
  config["loss_timeout_ns"] = 100'000'000;
  ProbeProcess probe(RTMETER_PROBE, folder, "probe", config);
  Outcome outcome;
  for (Json line = probe.next_line(); !line.is_null(); line = probe.next_line()) {
    const std::string event = line.find("event")->as_string();
    if (event == "ready") outcome.ready = line;
    if (event == "error") outcome.error = line;
    if (event == "end") outcome.end = line;
  }
  outcome.exit_code = probe.wait();
  return outcome;
}

Json throws(const char* where, const char* with = "words") {
  Json options = option("throws", where);
  if (std::string(where) != "nowhere") options["with"] = with;
  return options;
}

std::string text(const Json& of, const char* key) {
  const Json* found = of.is_object() ? of.find(key) : nullptr;
  return found == nullptr ? "" : found->as_string();
}

TEST(Throwing, NowhereLeavesEveryReleaseServed) {
  const Outcome outcome = run_with(throws("nowhere"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.end.find("counters")->find("refused_calls")->as_int(), 0);
}

// Field and value are those of what was set up.
TEST(Throwing, InSetupIsAnErrorOfWhatWasSetUp) {
  const struct {
    const char *where, *field, *value;
  } kCalls[] = {{"start", "adapter", "start"},
                {"describe", "adapter", "describe"},
                {"node", "node", "a"},
                {"publisher", "topic", "request"},
                {"subscriber", "topic", "request"}};
  for (const auto& call : kCalls) {
    const Outcome outcome = run_with(throws(call.where));
    EXPECT_EQ(outcome.exit_code, 1) << call.where;
    EXPECT_EQ(text(outcome.error, "field"), call.field) << call.where;
    EXPECT_EQ(text(outcome.error, "value"), call.value) << call.where;
    EXPECT_EQ(text(outcome.error, "message"), std::string("planted in ") + call.where);
    EXPECT_EQ(text(outcome.error, "remedy"), "see the middleware's messages in the cell's probe.stderr");
  }
  EXPECT_EQ(text(run_with(throws("node", "a_number")).error, "message"),
            "the middleware threw something that is not an exception");
}

// Two calls went through; each later one is counted, and the result says what the first threw.
TEST(Throwing, OnTheMeasuredPathIsARefusedCallThatIsToldOf) {
  const auto expect_refused = [](const Json& options, const std::string& threw) {
    const Outcome outcome = run_with(options);
    EXPECT_EQ(outcome.exit_code, 0) << threw;
    const std::int64_t refused = outcome.end.find("counters")->find("refused_calls")->as_int();
    EXPECT_GE(refused, kReleases - 2) << threw;
    std::string doubt;
    for (const Json& warning : outcome.end.find("warnings")->as_array())
      if (text(warning, "type") == "middleware_refused_calls") doubt = text(warning, "message");
    EXPECT_EQ(doubt,
              std::to_string(refused) +
                  " calls on the measured path were refused by the middleware (the first that threw: " +
                  threw + ")");
  };
  expect_refused(throws("spin_some"), "spin_some threw: planted in spin_some");
  expect_refused(throws("publish", "a_number"), "publish threw: something that is not an exception");
}

TEST(Throwing, FromInterruptEndsTheRunAllTheSame) { EXPECT_EQ(run_with(throws("interrupt")).exit_code, 0); }

TEST(Options, AreRefusedWithFieldValueAndChoices) {
  const char* const kCalls =
      "choose one of nowhere, start, describe, node, publisher, subscriber, publish, spin_some, interrupt";
  const struct {
    const char *key, *value, *message, *remedy;
  } kWrong[] = {
      {"thrwos", "start", "this adapter has no such option", "choose one of throws, with, only_in, rate"},
      {"throws", "elsewhere", "no such choice", kCalls},
      {"throws", "", "no such choice", kCalls},
      {"only_in", "timer", "means nothing in this run", "choose one of cycle"},
      {"only_in", "never", "no such choice", "choose one of cycle"},
      {"rate", "1001", "is no whole number from -5 to 1000", "give one, or leave it out"},
      {"rate", "-6", "is no whole number from -5 to 1000", "give one, or leave it out"},
      {"rate", "1e2", "is no whole number from -5 to 1000", "give one, or leave it out"},
      {"rate", "", "is no whole number from -5 to 1000", "give one, or leave it out"},
      {"rate", " 1", "is no whole number from -5 to 1000", "give one, or leave it out"},
      {"rate", "99999999999999999999", "is no whole number from -5 to 1000", "give one, or leave it out"}};
  for (const auto& wrong : kWrong) {
    const Outcome outcome = run_with(option(wrong.key, wrong.value));
    EXPECT_EQ(outcome.exit_code, 1) << wrong.key << " " << wrong.value;
    EXPECT_EQ(text(outcome.error, "field"), std::string("option ") + wrong.key);
    EXPECT_EQ(text(outcome.error, "value"), wrong.value);
    EXPECT_EQ(text(outcome.error, "message"), wrong.message) << wrong.key << " " << wrong.value;
    EXPECT_EQ(text(outcome.error, "remedy"), wrong.remedy) << wrong.key << " " << wrong.value;
  }
}

TEST(Options, AreTakenAndToldInTheResult) {
  const Outcome by_default = run_with(option("throws", "nowhere"));
  EXPECT_EQ(by_default.ready.find("adapter")->find("rate_in_effect")->as_string(), "7");
  const Outcome outcome = run_with(option("rate", "-5"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.ready.find("adapter")->find("rate_in_effect")->as_string(), "-5");
}

// One that the adapter has, but does not read in this run.
TEST(Options, ThatMeanNothingInThisRunAreRefused) {
  const Outcome outcome = run_with(Json(Json::Object{{"throws", "start"}, {"rate", "1"}}));
  EXPECT_EQ(text(outcome.error, "field"), "adapter");
  const Outcome unread = run_with(Json(Json::Object{{"with", "a_number"}, {"throws", "nowhere"}}));
  EXPECT_EQ(text(unread.error, "field"), "option with");
  EXPECT_EQ(text(unread.error, "message"), "means nothing in this run");
  EXPECT_EQ(text(unread.error, "remedy"),
            "leave it out; it is words|a_number: an exception with words, or a number");
  // As the front offers the ends of two hosts theirs.
  const Json options(Json::Object{{"with", "a_number"}, {"throws", "nowhere"}});
  EXPECT_EQ(run_with(options, Json::array().push("with")).exit_code, 0);
}

}  // namespace
}  // namespace rtmeter
