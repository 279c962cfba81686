// Discoveries on a clock moved by hand: how they end.
#include <gtest/gtest.h>

#include "by_hand.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;
using Rows = std::vector<Row>;

// Two participants with releases at 100, 200, …, which nobody finds.
Config discovery_of(std::int64_t samples) {
  Config config = config_by_hand(RTM_DISCOVERY, 0, samples);
  config.loss_timeout_ns = 50;
  config.discovery = DiscoveryConfig{};
  return config;
}

class Discovered : public ByHand {
 public:
  explicit Discovered(std::int64_t samples)
      : ByHand(discovery_of(samples), RTM_SPIN, RTM_RECEIVE_SPIN_ONCE, true) {
    middleware.publish = [](const Sent&) {};
    middleware.wait = [this](std::int64_t timeout_ns) { clock.at_ns += timeout_ns; };
  }
};

TEST(Discoveries, ParticipantsThatHearNobodyAreLostAtTheTimeout) {
  Discovered discovery(2);
  EXPECT_EQ(discovery.run(), (Rows{{100, 100, A, A, kLost}, {200, 200, A, A, kLost}}));
  EXPECT_EQ(discovery.clock.at_ns, 250);
}

TEST(Discoveries, GreetingsThatAreRefusedAtAReleaseAreRefusedCalls) {
  Discovered discovery(2);
  discovery.middleware.publish = nullptr;
  discovery.run();
  EXPECT_EQ(discovery.session.refused_calls(), 2U);
}

TEST(Discoveries, OneThatIsStoppedBeforeItsReleaseHasWhatWasDueInFlight) {
  Discovered discovery(9);
  discovery.clock.late_ns = {{100, 250}};  // 100, 200 and 300 were due by then
  discovery.clock.on_sleep = [&] { discovery.stop = true; };
  EXPECT_EQ(discovery.run(),
            (Rows{{100, A, A, A, kInFlight}, {200, A, A, A, kInFlight}, {300, A, A, A, kInFlight}}));
}

TEST(Discoveries, OneThatIsStoppedAsItLooksHasItsReleaseInFlight) {
  Discovered discovery(9);
  discovery.middleware.wait = [&](std::int64_t timeout_ns) {
    discovery.clock.at_ns += timeout_ns;
    discovery.stop = true;
  };
  EXPECT_EQ(discovery.run(), (Rows{{100, A, A, A, kInFlight}}));
}

}  // namespace
}  // namespace rtmeter
