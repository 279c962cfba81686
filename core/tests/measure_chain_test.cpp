// Chains on a clock moved by hand: where they end, and what comes out of turn.
#include <gtest/gtest.h>

#include <algorithm>

#include "by_hand.hpp"
#include "system/guard.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;
using Rows = std::vector<Row>;

// Source s with releases at 100, 200, …, and stage e, which passes on what comes. Messages come at once.
Config chain_of(std::int64_t samples, std::int64_t drain_ns = 0) {
  Config config = config_by_hand(RTM_CHAIN, 0, samples);
  config.role = RTM_ROLE_CLIENT;
  config.payload_bytes = 64;
  ChainStage source, event;
  source.name = "s";
  source.period_ns = 100;
  source.samples = samples;
  event.name = "e";
  event.inputs = {{"s", 1}};
  config.chain = ChainConfig{{source, event}, drain_ns};
  return config;
}

class Chain : public ByHand {
 public:
  explicit Chain(const Config& given) : ByHand(given, RTM_SPIN, RTM_RECEIVE_SPIN_ONCE, true) {
    middleware.publish = [this](const Sent& sent) {
      if (sent.topic == "s") middleware.deliver("s", sent);
    };
  }
  Rows rows_of(std::int64_t stage) {
    Rows all = run();
    all.erase(std::remove_if(all.begin(), all.end(), [&](const Row& row) { return row[0] != stage; }),
              all.end());
    return all;
  }
};

TEST(Chains, TheLastReleaseIsSampledThoughNothingIsWaitedForAfterIt) {
  Chain chain(chain_of(2));
  EXPECT_EQ(chain.run(), (Rows{{1, 0, 0, 100, 100, 100, kServed},
                               {0, 0, 0, 100, A, 100, kServed},
                               {1, 0, 1, 200, 200, 200, kServed},
                               {0, 0, 1, 200, A, 200, kServed}}));
  EXPECT_EQ(chain.clock.at_ns, 200);
}

TEST(Chains, WhatIsUnderWayIsWaitedForAsLongAsAsked) {
  Chain chain(chain_of(2, 70));
  chain.run();
  EXPECT_EQ(chain.clock.at_ns, 270);
}

TEST(Chains, ItIsWaitedFromWhenTheLastWasSentHoweverLate) {
  Chain chain(chain_of(2, 70));
  chain.clock.late_ns = {{200, 150}};
  chain.run();
  EXPECT_EQ(chain.clock.at_ns, 350 + 70);
}

TEST(Chains, AnInterruptedOneHasWhatWasDueInFlight) {
  Chain chain(chain_of(9));
  chain.clock.late_ns = {{200, 150}};  // 200 and 300 were due by then
  chain.clock.on_sleep = [&] { chain.stop = chain.clock.at_ns == 350; };
  EXPECT_EQ(chain.rows_of(0), (Rows{{0, 0, 0, 100, A, 100, kServed},
                                    {0, 0, 1, 200, A, A, kInFlight},
                                    {0, 0, 2, 300, A, A, kInFlight}}));
}

// 66 messages, of which 1 comes after 2 and twice; 0 once more at once, and again when 64 have come after it.
TEST(Chains, ToldApartAreWhatComesAgainAndWhatComesLate) {
  Chain chain(chain_of(66));
  std::vector<Sent> sent;
  chain.middleware.publish = [&](const Sent& one) {
    if (one.topic != "s") return;
    sent.push_back(one);
    const auto deliver = [&](std::size_t k) { chain.middleware.deliver("s", sent[k]); };
    const std::size_t k = sent.size() - 1;
    if (k != 1) deliver(k);
    if (k == 0) deliver(0);
    if (k == 2) deliver(1), deliver(1);
    if (k == 63) deliver(0);  // the oldest that is remembered
    if (k == 64) deliver(0);  // no more
  };
  const Rows passed_on = chain.rows_of(1);
  EXPECT_EQ(passed_on.size(), 67u);
  EXPECT_EQ(passed_on[1][2], 2);
  EXPECT_EQ(passed_on[2][2], 1);
  EXPECT_EQ(chain.counters.duplicate, 3u);
  EXPECT_EQ(chain.counters.out_of_order, 2u);
  EXPECT_EQ(chain.counters.corrupted, 0u);
}

// s at 100, 200, 300, 400, t at 100 and 300: what is new of one alone waits for the other.
TEST(Chains, AFusionPassesOnOnceAllOfItsInputsAreNew) {
  Config config = chain_of(4);
  ChainStage other = config.chain->stages[0];
  other.name = "t";
  other.period_ns = 200;
  other.samples = 2;
  config.chain->stages[1].inputs.push_back({"t", 1});
  config.chain->stages[1].fusion = true;
  config.chain->stages.push_back(other);
  Chain chain(config);
  std::vector<std::int64_t> passed_on;
  chain.middleware.publish = [&](const Sent& sent) {
    if (sent.topic != "e") return chain.middleware.deliver(sent.topic, sent);
    if (sent.sequence != RTM_SEQUENCE_HELLO) passed_on.push_back(chain.clock.at_ns);
  };
  chain.run();
  EXPECT_EQ(passed_on, (std::vector<std::int64_t>{100, 300}));
}

TEST(Chains, WhatIsDamagedIsCountedAndNotPassedOn) {
  Chain chain(chain_of(3));
  chain.middleware.publish = [&](const Sent& sent) {
    Sent damaged = sent;
    if (sent.sequence == 1) damaged.bytes[8] ^= 1;
    if (sent.sequence == 2) damaged.bytes.pop_back();
    if (sent.topic == "s") chain.middleware.deliver("s", damaged);
  };
  EXPECT_EQ(chain.rows_of(1).size(), 1u);
  EXPECT_EQ(chain.counters.corrupted, 2u);
}

// A wait that a message ends, here after 5 ms, is gone on with: so all of 20 ms is heard.
TEST(Chains, GreetingsAreTwentyMillisecondsApartHoweverSoonAWaitEnds) {
  Config config = chain_of(1);
  config.connect_timeout_ns = 1'000'000'000;
  ByHand chain(config);
  std::vector<std::int64_t> greetings;
  chain.middleware.publish = [&](const Sent& sent) {
    if (sent.topic != "s") return;
    greetings.push_back(chain.clock.at_ns);
    if (greetings.size() == 4) chain.middleware.deliver("s", sent);
  };
  chain.middleware.wait = [&](std::int64_t timeout_ns) {
    chain.clock.at_ns += std::min<std::int64_t>(timeout_ns, 5'000'000);
  };
  chain.clock.at_ns = 0;
  chain.measurement->set_up();
  constexpr std::int64_t kApart = 20'000'000;
  EXPECT_EQ(greetings, (std::vector<std::int64_t>{0, kApart, 2 * kApart, 3 * kApart}));
}

// In real time a source sleeps, which is exact; who hears waits for messages meanwhile.
TEST(Chains, OnlyWhoHearsWaitsInTheMiddleware) {
  for (const bool hears : {false, true}) {
    Config config = chain_of(2);
    if (!hears) config.chain->stages.pop_back();
    ByHand chain(config);
    int waits = 0;
    chain.middleware.publish = [&](const Sent& sent) {
      if (sent.topic == "s" && hears) chain.middleware.deliver("s", sent);
    };
    chain.middleware.wait = [&](std::int64_t timeout_ns) { ++waits, chain.clock.at_ns += timeout_ns; };
    chain.measurement->set_up();
    chain.clock.at_ns = waits = 0;
    told_to_go() = 100;
    const auto tell_end = [&] {
      if (chain.measurement->silent_ns() == 200) told_to_go() = chain.clock.at_ns;
    };
    chain.clock.on_sleep = tell_end;
    chain.middleware.wait = [&](std::int64_t timeout_ns) {
      ++waits, chain.clock.at_ns += timeout_ns;
      tell_end();
    };
    chain.measurement->run();
    told_to_go() = 0;
    EXPECT_EQ(waits, hears ? 3 : 0);
    EXPECT_EQ(chain.clock.sleeps,
              hears ? std::vector<std::int64_t>{} : (std::vector<std::int64_t>{100, 200, 20'000'200}));
    EXPECT_EQ(chain.rows().size(), hears ? 4u : 2u);
  }
}

// Source s has sent its last at 200; e hears x, of another process, until the end is told, and then to it.
TEST(Chains, WhoHasSentItsLastHearsTheOthersUntilItIsToldTheEnd) {
  constexpr std::int64_t kLater = 90'000'000;
  Config config = chain_of(2);
  config.chain->stages[1].inputs = {{"x", 1}};
  ByHand chain(config);
  std::vector<Sent> of_x;  // as s sends them
  std::vector<std::int64_t> passed_on_at_ns;
  chain.middleware.publish = [&](const Sent& sent) {
    if (sent.sequence == RTM_SEQUENCE_HELLO) chain.middleware.deliver("x", sent);
    if (sent.topic == "s" && sent.sequence != RTM_SEQUENCE_HELLO) of_x.push_back(sent);
    if (sent.topic == "e" && sent.sequence != RTM_SEQUENCE_HELLO)
      passed_on_at_ns.push_back(chain.clock.at_ns);
  };
  chain.middleware.wait = [&](std::int64_t timeout_ns) {
    chain.clock.at_ns += std::min<std::int64_t>(timeout_ns, kLater);
    if (chain.clock.at_ns < kLater) return;
    if (passed_on_at_ns.empty()) told_to_go() = chain.clock.at_ns + kLater;
    chain.middleware.deliver("x", of_x[passed_on_at_ns.size()]);
  };
  chain.measurement->set_up();
  chain.clock.at_ns = 0;
  told_to_go() = 100;
  chain.measurement->run();
  told_to_go() = 0;
  EXPECT_EQ(chain.measurement->silent_ns(), 200);
  EXPECT_EQ(passed_on_at_ns, (std::vector<std::int64_t>{100'000'200, 100'000'200 + kLater}));
  EXPECT_EQ(chain.clock.at_ns, 100'000'200 + kLater);
}

}  // namespace
}  // namespace rtmeter
