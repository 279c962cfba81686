// A run that is asked to end far behind its schedule.
#include <gtest/gtest.h>

#include "by_hand.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

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
