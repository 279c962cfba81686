// A run that is asked to end far behind its schedule.
#include <gtest/gtest.h>

#include <functional>

#include "by_hand.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

constexpr std::int64_t kBehind = 5'000;  // releases
constexpr std::size_t kRingRows = 64;

// Each wakes once for the release at 200, and is stopped then.
struct Behind {
  const char* what;
  rtm_measurement measurement;
  rtm_drive drive;
  std::size_t release, status;  // columns
  Status outcome;
};

void set(Config& config, const Behind& c) {
  config.mode = RTM_PERIODIC;
  config.in_flight = InFlight::open;
  config.role = c.measurement == RTM_ROUNDTRIP ? RTM_ROLE_CLIENT : RTM_ROLE_SINGLE;
  if (c.measurement != RTM_CHAIN) return;
  ChainStage source;
  source.name = "s";
  source.period_ns = 100;
  source.samples = 2 * kBehind;
  config.payload_bytes = 64;
  config.chain = ChainConfig{{source}, 0};
}

TEST(Interrupted, ABacklogIsHandedOverWholeHoweverLittleTheRingHolds) {
  constexpr Behind kCases[] = {
      {"wakeup", RTM_WAKEUP, RTM_SPIN, 0, 3, kSkipped},
      {"periodic", RTM_TIMER, RTM_SPIN, 0, 5, kSkipped},
      {"round trip", RTM_ROUNDTRIP, RTM_SPIN, 0, 4, kInFlight},
      {"cycle", RTM_CYCLE, RTM_SLEEP_THEN_SPIN_SOME, 0, 7, kInFlight},
      {"chain", RTM_CHAIN, RTM_SPIN, 3, 6, kInFlight},
  };
  for (const Behind& c : kCases) {
    SCOPED_TRACE(c.what);
    Config config = config_by_hand(c.measurement, 0, 2 * kBehind);
    set(config, c);
    ByHand hand(config, c.drive, RTM_RECEIVE_SPIN_ONCE, c.measurement == RTM_CHAIN, kRingRows);
    const std::int64_t end_ns = 200 + kBehind * 100;
    hand.clock.late_ns = {{200, kBehind * 100}};
    hand.clock.on_sleep = [&] { hand.stop = hand.clock.at_ns >= end_ns; };
    hand.middleware.arm = [] {};
    hand.middleware.traits = {RTM_EVERY_TICK, RTM_SKIP, 1};
    hand.middleware.spin = [&](std::int64_t) {
      hand.clock.at_ns = 100;
      hand.middleware.fire(100, 100);
      hand.clock.sleep_until_ns(200);
    };
    hand.middleware.publish = [&](const Sent& sent) {
      if (static_cast<std::int64_t>(sent.sequence) < 0) return hand.middleware.deliver("pong", sent);
      if (c.measurement == RTM_CYCLE) hand.middleware.deliver(sent.topic, sent);
    };
    hand.start_writing();
    const std::vector<Row> rows = hand.run();
    EXPECT_EQ(hand.overflow(), 0u);
    ASSERT_EQ(rows.size(), static_cast<std::size_t>(kBehind) + 2);
    for (std::size_t k = 0; k < rows.size(); ++k)
      ASSERT_EQ(rows[k][c.release], 100 + 100 * static_cast<std::int64_t>(k));
    EXPECT_EQ(rows.back()[c.status], c.outcome);
  }
}

// Nobody answers, and more releases passed in a stall than are remembered as under way: the end is asked for
// as the sender waits for room.
TEST(Interrupted, NoOpenRequestTakesThePlaceOfOneThatIsUnderWay) {
  Config config = config_by_hand(RTM_ROUNDTRIP, 1, 100'000);
  config.role = RTM_ROLE_CLIENT;
  config.in_flight = InFlight::open;
  config.loss_timeout_ns = 1'000'000;  // 10,000 periods; the ring holds 32,768
  ByHand hand(config);
  hand.clock.late_ns = {{200, 4'000'000}};
  std::int64_t sent_last = -1;
  hand.middleware.publish = [&](const Sent& sent) {
    const auto k = static_cast<std::int64_t>(sent.sequence);
    if (k < 0) return hand.middleware.deliver("pong", sent);
    EXPECT_FALSE(hand.stop);
    sent_last = k;
  };
  hand.middleware.wait = [&](std::int64_t) { hand.stop = true; };
  const std::vector<Row> rows = hand.run();
  EXPECT_EQ(sent_last, (1 << 15) - 1);
  EXPECT_EQ(rows.size(), 40'002u);
  for (std::size_t k = 0; k < rows.size(); ++k)
    ASSERT_EQ(rows[k][0], 100 + 100 * static_cast<std::int64_t>(k));
}

}  // namespace
}  // namespace rtmeter
