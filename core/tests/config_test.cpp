#include "config.hpp"

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

TEST(Config, CpusAreNumbersThatACpuCanHave) {
  EXPECT_EQ(outcome(R"("affinity": [0, 8191])"), "ok");
  for (const char* value : {"[4294967296]", "[-1]", "[8192]", "[0.5]", "[\"1\"]", "1"})
    EXPECT_CONTAINS(outcome(std::string("\"affinity\": ") + value), "must be a list of CPU numbers") << value;
  EXPECT_CONTAINS(outcome(R"("affinity": [])"), "affinity = []: names no CPU");
}

TEST(Config, AnOptionThatIsNoTextIsNamed) {
  EXPECT_CONTAINS(outcome(R"("options": {"timer": 1})"), "options.timer = 1: must be a string");
  EXPECT_CONTAINS(outcome(R"("options": "timer")"), "options = \"timer\": is not a JSON object");
}

TEST(Config, TheDeadlinePolicyHasOneThread) {
  const std::string policy =
      R"("scheduling": {"policy": "deadline", "runtime_ns": 1, "deadline_ns": 2, "period_ns": 3}, )";
  EXPECT_EQ(outcome(policy + R"("apply": "after_init")"), "ok");
  EXPECT_CONTAINS(outcome(policy + R"("apply": "after_init", "in_flight": "open")"),
                  "in_flight = open: needs");
}

}  // namespace
}  // namespace rtmeter
