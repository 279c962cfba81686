// When a run is said to have lost or passed over most of its releases, and what is said.
#include "probe/doubts.hpp"

#include <gtest/gtest.h>

namespace rtmeter {
namespace {

Config of(rtm_measurement measurement) {
  Config config;
  config.measurement = measurement;
  return config;
}

Json with_depth(const char* depth) {
  return Json(Json::Object{{"qos", Json(Json::Object{{"depth", depth}})}});
}

TEST(Doubts, OfMostLostBeginAboveHalfAndNameTheQueueDepthInEffect) {
  const Config trips = of(RTM_ROUNDTRIP);
  const Json adapter = with_depth("1000");
  EXPECT_FALSE(doubt_of_lost(trips, adapter, 100, 20, 30));
  const auto doubt = doubt_of_lost(trips, adapter, 100, 20, 31);
  ASSERT_TRUE(doubt);
  EXPECT_EQ(doubt->find("type")->as_string(), "mostly_lost");
  EXPECT_EQ(doubt->find("message")->as_string(),
            "20 of 100 releases were lost and 31 skipped, with a queue depth of 1000");
  EXPECT_NE(doubt->find("hint")->as_string().find("history_depth"), std::string::npos);
  EXPECT_EQ(doubt_of_lost(of(RTM_CYCLE), adapter, 3, 2, 0)->find("type")->as_string(), "mostly_lost");
  EXPECT_EQ(doubt_of_lost(of(RTM_CYCLE), adapter, 3, 2, 0)->find("message")->as_string(),
            "2 of 3 releases were lost, with a queue depth of 1000");
}

TEST(Doubts, OfMostLostSayNothingOfADepthThatIsNotToldAndAdviseNoneThatIsRefused) {
  const auto untold = doubt_of_lost(of(RTM_ROUNDTRIP), Json(), 3, 2, 0);
  EXPECT_EQ(untold->find("message")->as_string(), "2 of 3 releases were lost");
  EXPECT_EQ(untold->find("hint")->as_string().find("history_depth"), std::string::npos);
  const auto request = doubt_of_lost(of(RTM_REQUEST), with_depth("10"), 3, 2, 0);
  EXPECT_EQ(request->find("message")->as_string(), "2 of 3 releases were lost, with a queue depth of 10");
  EXPECT_EQ(request->find("hint")->as_string().find("history_depth"), std::string::npos);
}

TEST(Doubts, OfMostSkippedNameNoQueueWhereNothingWasLost) {
  for (const rtm_measurement measurement : {RTM_WAKEUP, RTM_TIMER, RTM_ROUNDTRIP}) {
    const auto doubt = doubt_of_lost(of(measurement), with_depth("1"), 10, 0, 6);
    ASSERT_TRUE(doubt);
    EXPECT_EQ(doubt->find("type")->as_string(), "mostly_skipped");
    EXPECT_EQ(doubt->find("message")->as_string(), "6 of 10 releases were skipped");
  }
}

TEST(Doubts, OfLossAreNotTheServers) {
  Config server = of(RTM_ROUNDTRIP);
  server.role = RTM_ROLE_SERVER;
  EXPECT_FALSE(doubt_of_lost(server, Json(), 100, 90, 10));
}

TEST(Doubts, OverrunsOfADeadlinePolicyAreTold) {
  Config config;
  config.scheduling = {.policy = Scheduling::Policy::deadline,
                       .runtime_ns = 200'000,
                       .deadline_ns = 1'000'000,
                       .period_ns = 1'000'000};
  EXPECT_EQ(doubt_of_overruns(config, 0), std::nullopt);
  const auto doubt = doubt_of_overruns(config, 3);
  EXPECT_EQ(doubt->find("type")->as_string(), "deadline_overruns");
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "(deadline:200us/1ms/1ms) 3 times before",
                      doubt->find("message")->as_string());
}

}  // namespace
}  // namespace rtmeter
