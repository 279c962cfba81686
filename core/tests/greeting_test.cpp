// How a round trip's client greets further subscribers before the run.
#include <gtest/gtest.h>

#include <vector>

#include "by_hand.hpp"
#include "system/guard.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

// Each is answered after 10 ns. The first looks for the server; the sixth is heard by all.
TEST(Greetings, AreTwentyMillisecondsApartHoweverSoonTheyAreAnswered) {
  Config config = config_by_hand(RTM_ROUNDTRIP, 0, 1);
  config.role = RTM_ROLE_CLIENT;
  config.connect_timeout_ns = 1'000'000'000;
  config.beside = BesideConfig{};
  config.beside->subscribers = 2;
  ByHand hand(config);
  std::vector<std::int64_t> greetings;
  std::vector<Sent> answers;
  hand.middleware.publish = [&](const Sent& sent) {
    ASSERT_EQ(sent.sequence, RTM_SEQUENCE_HELLO);
    greetings.push_back(hand.clock.at_ns);
    answers.push_back(sent);
    if (greetings.size() == 6) first_release_told() = 1;
  };
  hand.middleware.wait = [&](std::int64_t timeout_ns) {
    hand.clock.at_ns += answers.empty() ? timeout_ns : std::min<std::int64_t>(timeout_ns, 10);
    for (const Sent& one : std::exchange(answers, {})) hand.middleware.deliver("pong", one);
  };
  hand.clock.at_ns = 0;
  hand.measurement->set_up();
  first_release_told() = 0;
  constexpr std::int64_t kApart = 20'000'000;
  EXPECT_EQ(greetings, (std::vector<std::int64_t>{0, 10, 10 + kApart, 10 + 2 * kApart, 10 + 3 * kApart,
                                                  10 + 4 * kApart}));
}

}  // namespace
}  // namespace rtmeter
