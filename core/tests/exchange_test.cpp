// Round trips and cycles: what is sent when, and how each release is settled.
#include <gtest/gtest.h>
#include <sched.h>

#include "errors.hpp"
#include "line.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;
using Times = std::vector<std::int64_t>;

TEST(RoundTrip, OneInFlightPassesOverWhatPassedMeanwhile) {
  Line wire(round_trips(InFlight::one, 6));
  wire.delay_ns = {{1, 250}};
  EXPECT_EQ(wire.run(), (Rows{{100, 100, 130, A, kWarm},
                              {200, 200, 450, A, kServed},
                              {300, A, A, 450, kSkipped},
                              {400, A, A, 450, kSkipped},
                              {500, 500, 530, A, kServed},
                              {600, 600, 630, A, kServed},
                              {700, 700, 730, A, kServed}}));
  EXPECT_EQ(wire.clock.sleeps, (Times{100, 200, 500, 600, 700}));
  EXPECT_EQ(wire.fact("overrun"), R"("skip")");
}

TEST(RoundTrip, OneInFlightCatchesUpWithoutASleep) {
  Line wire(round_trips(InFlight::one, 6, RTM_CATCH_UP));
  wire.delay_ns = {{1, 250}};
  EXPECT_EQ(wire.run(), (Rows{{100, 100, 130, A, kWarm},
                              {200, 200, 450, A, kServed},
                              {300, 450, 480, A, kServed},
                              {400, 480, 510, A, kServed},
                              {500, 510, 540, A, kServed},
                              {600, 600, 630, A, kServed},
                              {700, 700, 730, A, kServed}}));
  EXPECT_EQ(wire.clock.sleeps, (Times{100, 200, 600, 700}));
}

// A listener receives while the sender sleeps: it never waits but for a reply that is late at the next
// release.
TEST(RoundTrip, ASenderThatDoesNotReceiveSleepsThroughTheAnswer) {
  Config config = round_trips(InFlight::one, 4);
  config.loss_timeout_ns = 80;
  Line wire(config, RTM_SPIN, RTM_RECEIVE_LISTENER);
  wire.delay_ns = {{1, kNever}, {2, 85}, {4, 0}};
  wire.clock.late_ns = {{300, 5}};
  EXPECT_EQ(wire.run(), (Rows{{100, 100, 130, A, kWarm},
                              {200, 200, A, A, kLost},  // free at 280: the next release is served
                              {300, 305, A, A, kLost},
                              {400, 400, 430, A, kServed},
                              {500, 500, 500, A, kServed}}));
  EXPECT_EQ(wire.clock.sleeps, (Times{100, 200, 300, 400, 500}));
  EXPECT_EQ(wire.counters.late_after_lost, 1u);
}

TEST(RoundTrip, OpenSendsEveryReleaseWhateverIsOutstanding) {
  Line wire(round_trips(InFlight::open, 5));
  wire.delay_ns = {{0, 250}, {1, 250}, {2, 250}, {3, 250}, {4, 250}, {5, 250}};
  wire.clock.late_ns = {{300, 120}};
  EXPECT_EQ(wire.run(), (Rows{{100, 100, 350, A, kWarm},
                              {200, 200, 450, A, kServed},
                              {300, 420, 670, A, kServed},
                              {400, 420, 670, A, kServed},
                              {500, 500, 750, A, kServed},
                              {600, 600, 850, A, kServed}}));
  EXPECT_EQ(wire.clock.sleeps, (Times{100, 200, 300, 500, 600}));
  EXPECT_EQ(wire.fact("overrun"), R"("catch_up")");
}

TEST(RoundTrip, OpenPassesOverUnderSkip) {
  Line wire(round_trips(InFlight::open, 5, RTM_SKIP));
  wire.clock.late_ns = {{300, 120}};
  const Rows rows = wire.run();
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[2], (Row{300, 420, 450, A, kServed}));
  EXPECT_EQ(rows[3], (Row{400, A, A, 420, kSkipped}));
  EXPECT_EQ(rows[4], (Row{500, 500, 530, A, kServed}));
}

TEST(RoundTrip, WithoutAReplyWithinTheLossTimeoutIsLost) {
  Line wire(round_trips(InFlight::one, 20));
  wire.delay_ns = {{1, 1'500}, {11, 600}};  // the reply to 1 comes while 11 is awaited
  const Rows rows = wire.run();
  ASSERT_EQ(rows.size(), 21u);
  EXPECT_EQ(rows[1], (Row{200, 200, A, A, kLost}));
  EXPECT_EQ(rows[10], (Row{1'100, A, A, 1'200, kSkipped}));
  EXPECT_EQ(rows[11], (Row{1'200, 1'200, 1'800, A, kServed}));
  EXPECT_EQ(wire.counters.late_after_lost, 1u);
  EXPECT_EQ(wire.counters.duplicate, 0u);
  EXPECT_EQ(wire.counters.out_of_order, 0u);
}

TEST(RoundTrip, AReplyAtTheLossTimeoutIsInTime) {
  Line wire(round_trips(InFlight::one, 1));
  wire.delay_ns = {{1, 1'000}};
  EXPECT_EQ(wire.run().back(), (Row{200, 200, 1'200, A, kServed}));
  EXPECT_EQ(wire.counters.late_after_lost, 0u);
}

TEST(RoundTrip, AReplyAfterTheLossTimeoutThatNobodyGaveUpIsLostToo) {
  Line wire(round_trips(InFlight::open, 1));
  wire.delay_ns = {{1, 1'001}};
  EXPECT_EQ(wire.run().back(), (Row{200, 200, A, A, kLost}));
  EXPECT_EQ(wire.counters.late_after_lost, 1u);
}

TEST(RoundTrip, OpenGivesUpWhatNeverComes) {
  Line wire(round_trips(InFlight::open, 3));
  wire.delay_ns = {{2, kNever}};
  const Rows rows = wire.run();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[2], (Row{300, 300, A, A, kLost}));
  EXPECT_EQ(rows[3], (Row{400, 400, 430, A, kServed}));
}

TEST(RoundTrip, CountsWhatIsNoReplyOrNotInTurn) {
  Line wire(round_trips(InFlight::open, 5));
  wire.delay_ns = {{0, 150}, {2, 150}};  // 0 (warm-up) comes after 1, and 2 after 3
  auto publish = wire.middleware.publish;
  wire.middleware.publish = [&](const Sent& sent) {
    publish(sent);
    if (sent.sequence == 4) publish(sent);  // a duplicate
    if (sent.sequence == 5) {
      Sent bad = sent;
      bad.bytes.back() ^= 1;
      wire.under_way.emplace(wire.clock.at_ns + 5, bad);
      bad = sent;
      bad.sequence = 99;  // not one of ours
      wire.under_way.emplace(wire.clock.at_ns + 6, bad);
    }
  };
  const Rows rows = wire.run();
  for (std::size_t k = 0; k < rows.size(); ++k) EXPECT_EQ(rows[k][4] & 15, kServed) << k;
  EXPECT_EQ(wire.counters.out_of_order, 1u);
  EXPECT_EQ(wire.counters.duplicate, 1u);
  EXPECT_EQ(wire.counters.corrupted, 2u);
  EXPECT_EQ(wire.counters.late_after_lost, 0u);
}

TEST(RoundTrip, WhatIsInterruptedIsInFlight) {
  Line wire(round_trips(InFlight::open, 20));
  wire.delay_ns = {{1, kNever}, {2, kNever}};
  wire.clock.late_ns = {{300, 430}};
  wire.stop_at_ns = 730;
  EXPECT_EQ(wire.run(), (Rows{{100, 100, 130, A, kWarm},
                              {200, 200, A, A, kInFlight},
                              {300, 730, A, A, kInFlight},
                              {400, A, A, A, kInFlight},
                              {500, A, A, A, kInFlight},
                              {600, A, A, A, kInFlight},
                              {700, A, A, A, kInFlight}}));
}

TEST(RoundTrip, ASleepThatWasEndedSendsNothing) {
  Line wire(round_trips(InFlight::one, 20));
  wire.clock.late_ns = {{300, -50}};
  wire.stop_at_ns = 250;
  EXPECT_EQ(wire.run().size(), 2u);
}

TEST(RoundTrip, AReleaseMetAsTheRunIsStoppedIsSent) {
  Line wire(round_trips(InFlight::one, 20));
  wire.stop_at_ns = 300;
  EXPECT_EQ(wire.run(),
            (Rows{{100, 100, 130, A, kWarm}, {200, 200, 230, A, kServed}, {300, 300, A, A, kInFlight}}));
}

// Real time: a receiver may have stamped and not stored yet. On a scripted clock none is in between.
TEST(RoundTrip, WhatNeverComesIsGivenUpAtItsTimeOnAScriptedClock) {
  for (const auto& [is_scripted, grace_ns] : {std::pair{true, 0}, std::pair{false, 100'000'000}}) {
    Line wire(round_trips(InFlight::open, 1), RTM_SPIN, RTM_RECEIVE_SPIN_ONCE, is_scripted);
    wire.delay_ns = {{1, kNever}};
    EXPECT_EQ(wire.run().back(), (Row{200, 200, A, A, kLost}));
    EXPECT_EQ(wire.clock.at_ns, 1'200 + grace_ns);
  }
}

// 40,000 releases of one moment, and room for 32,768 until the replies come.
TEST(RoundTrip, ABurstWaitsForRoomOrOnAScriptedClockHasIt) {
  constexpr std::int64_t kBurst = 40'000, kRoom = 32'768;
  for (const bool is_scripted : {true, false}) {
    Line wire(round_trips(InFlight::open, kBurst), RTM_SPIN, RTM_RECEIVE_SPIN_ONCE, is_scripted);
    wire.clock.late_ns = {{200, 100 * kBurst}};
    const Rows rows = wire.run();
    ASSERT_EQ(rows.size(), kBurst + 1u);
    const std::int64_t burst_ns = 200 + 100 * kBurst;
    EXPECT_EQ(rows[kRoom], (Row{100 * (kRoom + 1), burst_ns, burst_ns + 30, A, kServed}));
    const std::int64_t then_ns = is_scripted ? burst_ns : burst_ns + 30;
    EXPECT_EQ(rows[kRoom + 1], (Row{100 * (kRoom + 2), then_ns, then_ns + 30, A, kServed}));
    EXPECT_EQ(rows.back()[1], then_ns);
  }
}

// Which call receives: nothing is in parallel on a scripted clock, and between two polls no time passes.
TEST(RoundTrip, ReceivesByTheCallThatItsWayNames) {
  struct Case {
    rtm_receive receive;
    bool is_scripted;
    const char* calls;
  };
  for (const Case& c : {Case{RTM_RECEIVE_SPIN_ONCE, false, "wait"}, Case{RTM_RECEIVE_SPIN_ONCE, true, "wait"},
                        Case{RTM_RECEIVE_POLL, false, "spin_some"}, Case{RTM_RECEIVE_POLL, true, "wait"},
                        Case{RTM_RECEIVE_SPIN, true, "spin"}}) {
    Line wire(round_trips(InFlight::one, 2), RTM_SPIN, c.receive, c.is_scripted);
    const auto wait = wire.middleware.wait;
    std::map<std::string, int> calls;
    wire.middleware.wait = [&](std::int64_t ns) { ++calls["wait"], wait(ns); };
    wire.middleware.spin = [&](std::int64_t ns) { ++calls["spin"], wait(ns); };
    wire.middleware.spin_some = [&] { ++calls["spin_some"], wait(30); };
    wire.measurement->set_up();
    calls.clear();
    wire.clock.at_ns = 0;
    wire.measurement->run();
    EXPECT_EQ(wire.rows(),
              (Rows{{100, 100, 130, A, kWarm}, {200, 200, 230, A, kServed}, {300, 300, 330, A, kServed}}));
    EXPECT_EQ(calls, (std::map<std::string, int>{{c.calls, 3}}));
    EXPECT_EQ(wire.middleware.interrupts, c.receive == RTM_RECEIVE_SPIN ? 3 : 0)
        << "a spin ends by the reply";
  }
}

// Spun by a thread of its own, which stamps and is known before the run.
TEST(RoundTrip, HasAReceiverThatIsKnownBeforeTheRun) {
  struct Case {
    InFlight in_flight;
    rtm_receive receive;
    std::size_t receivers;
  };
  for (const Case& c :
       {Case{InFlight::one, RTM_RECEIVE_SPIN, 1}, Case{InFlight::open, RTM_RECEIVE_SPIN, 1},
        Case{InFlight::open, RTM_RECEIVE_SPIN_ONCE, 1}, Case{InFlight::open, RTM_RECEIVE_POLL, 1},
        Case{InFlight::one, RTM_RECEIVE_SPIN_ONCE, 0}, Case{InFlight::one, RTM_RECEIVE_POLL, 0}}) {
    Line wire(round_trips(c.in_flight, 2), RTM_SPIN, c.receive);
    wire.measurement->set_up();
    std::atomic<bool> asked{false};
    const auto publish = wire.middleware.publish;
    Sent hello;
    wire.middleware.publish = [&](const Sent& sent) { hello = sent, asked = true; };
    const auto receive = [&](auto&&...) {  // a receiver's own returns for a message or an interrupt only
      while (c.receivers > 0 && !asked && wire.middleware.interrupts == 0) sched_yield();
      if (asked.exchange(false)) wire.middleware.deliver("pong", hello);
    };
    wire.middleware.spin = wire.middleware.wait = receive;
    wire.middleware.spin_some = receive;
    wire.measurement->begin();
    const std::vector<int> tids = wire.measurement->measured_tids();
    ASSERT_EQ(tids.size(), c.receivers);
    EXPECT_EQ(wire.measurement->stamping_tids(), c.receivers == 0 ? std::vector<int>{gettid()} : tids);
    wire.measurement->end();
    EXPECT_EQ(wire.middleware.interrupts > 0, c.receivers > 0);
  }
}

TEST(RoundTrip, AServerThatDoesNotAnswerIsAnError) {
  Line wire(round_trips(InFlight::one, 1));
  wire.middleware.publish = [](const Sent&) {};
  wire.middleware.wait = [&](std::int64_t) { wire.clock.at_ns += 400; };
  EXPECT_THROW(wire.measurement->set_up(), Failure);
  EXPECT_EQ(wire.clock.at_ns, 1'200);
}

TEST(RoundTrip, AServerSendsBackWhatItGets) {
  Config config = config_by_hand(RTM_ROUNDTRIP, 5, 0);
  config.role = RTM_ROLE_SERVER;
  ByHand hand(config, RTM_SPIN, RTM_RECEIVE_SPIN);
  std::vector<Sent> answers;
  hand.middleware.publish = [&](const Sent& sent) { answers.push_back(sent); };
  int spins = 0;
  hand.middleware.spin = [&](std::int64_t) {
    hand.clock.at_ns = 1'000 + spins;
    hand.middleware.deliver("ping", {"ping", spins == 0 ? RTM_SEQUENCE_HELLO : 40 + spins, {1, 2, 3}});
    hand.stop = ++spins == 3;
  };
  EXPECT_EQ(hand.run(), (Rows{{41, 1'001, 1'001, kServed}, {42, 1'002, 1'002, kServed}}));
  ASSERT_EQ(answers.size(), 3u);
  for (const Sent& answer : answers) {
    EXPECT_EQ(answer.topic, "pong");
    EXPECT_EQ(answer.bytes, (std::vector<std::uint8_t>{1, 2, 3}));
  }
}

Config cycles(std::optional<rtm_overrun> overrun = {}) {
  Config config = config_by_hand(RTM_CYCLE, 1, 5);
  config.overrun = overrun;
  return config;
}

TEST(Cycle, CatchesUpWithoutASleep) {
  Line wire(cycles(), RTM_SLEEP_THEN_SPIN_SOME);
  wire.clock.late_ns = {{200, 180}};
  EXPECT_EQ(wire.run(), (Rows{{100, 100, 100, 130, 130, 160, A, kWarm},
                              {200, 380, 380, 410, 410, 440, A, kServed},
                              {300, 440, 440, 470, 470, 500, A, kServed},
                              {400, 500, 500, 530, 530, 560, A, kServed},
                              {500, 560, 560, 590, 590, 620, A, kServed},
                              {600, 620, 620, 650, 650, 680, A, kServed}}));
  EXPECT_EQ(wire.clock.sleeps, (Times{100, 200}));
  EXPECT_EQ(wire.fact("overrun"), R"("catch_up")");
}

TEST(Cycle, PassesOverUnderSkip) {
  Line wire(cycles(RTM_SKIP), RTM_SLEEP_THEN_SPIN_SOME);
  wire.clock.late_ns = {{200, 180}};
  EXPECT_EQ(wire.run(), (Rows{{100, 100, 100, 130, 130, 160, A, kWarm},
                              {200, 380, 380, 410, 410, 440, A, kServed},
                              {300, A, A, A, A, A, 440, kSkipped},
                              {400, A, A, A, A, A, 440, kSkipped},
                              {500, 500, 500, 530, 530, 560, A, kServed},
                              {600, 600, 600, 630, 630, 660, A, kServed}}));
  EXPECT_EQ(wire.clock.sleeps, (Times{100, 200, 500, 600}));
}

// The middleware's timer starts each: ticks at 1000, 1100, 1200; none for the next two; 1500.
TEST(Cycle, DrivenByATimerPassesOverWhatItPassesOver) {
  Line wire(cycles(), RTM_SPIN);
  wire.middleware.traits = {RTM_EVERY_TICK, RTM_SKIP, 1};
  const Times ticks{1'000, 1'100, 1'200, 1'500};
  std::size_t tick = 0;
  wire.middleware.arm = [] {};
  wire.middleware.spin = [&](std::int64_t) {
    ASSERT_LT(tick, ticks.size());
    wire.clock.at_ns = ticks[tick] + 7;
    wire.middleware.fire(ticks[tick], ticks[tick]);
    while (!wire.under_way.empty()) wire.middleware.wait(1'000);
    ++tick;
  };
  EXPECT_EQ(wire.run(), (Rows{{1'000, 1'007, 1'007, 1'037, 1'037, 1'067, A, kWarm},
                              {1'100, 1'107, 1'107, 1'137, 1'137, 1'167, A, kServed},
                              {1'200, 1'207, 1'207, 1'237, 1'237, 1'267, A, kServed},
                              {1'300, A, A, A, A, A, 1'507, kSkipped},
                              {1'400, A, A, A, A, A, 1'507, kSkipped},
                              {1'500, 1'507, 1'507, 1'537, 1'537, 1'567, A, kServed}}));
}

}  // namespace
}  // namespace rtmeter
