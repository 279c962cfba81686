// One-shot and periodic timers of a middleware that the test plays.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "by_hand.hpp"
#include "emulated.hpp"
#include "errors.hpp"
#include "sanitized.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;
using Rows = std::vector<Row>;

constexpr std::int64_t kOneSecond = 1'000'000'000;

Config one_shots(std::int64_t samples) {
  Config config = config_by_hand(RTM_TIMER, 1, samples);
  config.mode = RTM_ONE_SHOT;
  return config;
}

TEST(OneShot, IsArmedAgainAfterTheCallback) {
  ByHand hand(one_shots(2));
  hand.middleware.arm = [&] { hand.clock.at_ns += 3; };
  hand.middleware.wait = [&](std::int64_t) {
    hand.clock.at_ns += 110;
    hand.middleware.fire(hand.clock.at_ns - 20, hand.clock.at_ns - 10);
  };
  EXPECT_EQ(hand.run(), (Rows{{0, 3, 113, 93, 103, kWarm},
                              {113, 116, 226, 206, 216, kServed},
                              {226, 229, 339, 319, 329, kServed}}));
}

TEST(OneShot, ThatDoesNotFireWithinTenTimeoutsAndASecondIsLost) {
  ByHand hand(one_shots(2));
  hand.middleware.arm = [] {};
  int waits = 0;
  std::vector<std::int64_t> timeouts;
  hand.middleware.wait = [&](std::int64_t timeout_ns) {
    timeouts.push_back(timeout_ns);
    hand.clock.at_ns += ++waits == 2 ? timeout_ns : 100;
    if (waits != 2) hand.middleware.fire();
  };
  EXPECT_EQ(hand.run(), (Rows{{0, 0, 100, A, A, kWarm},
                              {100, 100, A, A, A, kLost},
                              {kOneSecond + 1'100, kOneSecond + 1'100, kOneSecond + 1'200, A, A, kServed}}));
  EXPECT_EQ(timeouts, (std::vector<std::int64_t>(3, kOneSecond + 1'000)));
}

TEST(OneShot, ACallbackAfterTheShotWasGivenUpDoesNotSaveIt) {
  for (const std::int64_t late_ns : {0, 1}) {
    ByHand hand(one_shots(1));
    hand.middleware.arm = [] {};
    hand.middleware.wait = [&](std::int64_t timeout_ns) {
      hand.clock.at_ns += timeout_ns + late_ns;
      hand.middleware.fire();
    };
    EXPECT_EQ(hand.run().front()[5] & 15, late_ns == 0 ? kServed : kLost);
  }
}

TEST(OneShot, ThatIsInterruptedIsInFlight) {
  ByHand hand(one_shots(5));
  hand.middleware.arm = [] {};
  hand.middleware.wait = [&](std::int64_t) {
    hand.clock.at_ns += 50;
    hand.stop = true;
  };
  EXPECT_EQ(hand.run(), (Rows{{0, 0, A, A, A, kInFlight | kWarmUpFlag}}));
}

TEST(OneShot, ThatIsInterruptedWhenItIsLostIsLost) {
  for (const std::int64_t late_ns : {-1, 0, 1}) {
    ByHand hand(one_shots(5));
    hand.middleware.arm = [] {};
    hand.middleware.wait = [&](std::int64_t timeout_ns) {
      hand.clock.at_ns += timeout_ns + late_ns;
      hand.stop = true;
    };
    const Rows rows = hand.run();
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0][5] & 15, late_ns < 0 ? kInFlight : kLost) << late_ns;
  }
}

TEST(OneShot, SleptForServesWhatHasPassedWithoutASleep) {
  ByHand hand(one_shots(1), RTM_SLEEP_THEN_SPIN_SOME);
  hand.middleware.arm = [] {};
  int spins = 0;
  hand.middleware.spin_some = [&] {
    if (++spins == 1) hand.clock.at_ns += 250;  // past the next two looks
    if (spins == 4 || spins == 5) hand.middleware.fire();
  };
  const Rows rows = hand.run();
  EXPECT_EQ(rows[0][2], 400);
  EXPECT_EQ(hand.clock.sleeps, (std::vector<std::int64_t>{100, 400, 500}));
}

TEST(OneShot, ByPollingIsAskedAgainAndAgain) {
  ByHand hand(one_shots(1), RTM_POLL);
  hand.middleware.arm = [] {};
  hand.middleware.spin_some = [&] {
    if ((hand.clock.at_ns += 10) % 100 == 0) hand.middleware.fire();
  };
  EXPECT_EQ(hand.run(), (Rows{{0, 0, 100, A, A, kWarm}, {100, 100, 200, A, A, kServed}}));
}

Config periodic(std::int64_t warm_up, std::int64_t samples) {
  return config_by_hand(RTM_TIMER, warm_up, samples);
}

// Fires at these times, one a spin; then falls silent.
struct Ticking : ByHand {
  Ticking(const Config& given, rtm_timer_traits traits, std::vector<std::int64_t> at_ns)
      : ByHand(given), times(std::move(at_ns)) {
    middleware.traits = traits;
    middleware.arm = [] {};
    middleware.spin = [this](std::int64_t) {
      if (next == times.size()) {
        clock.at_ns = std::max(clock.at_ns, watchdog.load());
        return;
      }
      clock.at_ns = times[next++];
      const bool reports = middleware.traits.reports_monotonic != 0;
      middleware.fire(reports ? clock.at_ns - clock.at_ns % 100 : RTM_ABSENT,
                      reports ? clock.at_ns - 1 : RTM_ABSENT);
    };
  }
  std::vector<std::int64_t> times;
  std::size_t next = 0;
};

TEST(Periodic, WhatItReportsSaysWhichReleaseIsServed) {
  Ticking hand(periodic(1, 4), {RTM_EVERY_TICK, RTM_SKIP, 1}, {1'003, 1'120, 1'405});
  EXPECT_EQ(hand.run(), (Rows{{1'000, 1'003, 1'000, 1'002, A, kWarm},
                              {1'100, 1'120, 1'100, 1'119, A, kServed},
                              {1'200, A, A, A, 1'405, kSkipped},
                              {1'300, A, A, A, 1'405, kSkipped},
                              {1'400, 1'405, 1'400, 1'404, A, kServed}}));
  EXPECT_EQ(hand.middleware.interrupts, 1);
  EXPECT_EQ(hand.fact("ticks"), R"("reported")");
  EXPECT_EQ(hand.fact("overrun"), R"("skip")");
  EXPECT_EQ(hand.fact("grid"), R"({"t0_ns":1000,"period_ns":100,"t0_from":"reported"})");
}

TEST(Periodic, TheThreadWasFreeWithThePreviousCallback) {
  Ticking hand(periodic(1, 4), {RTM_EVERY_TICK, RTM_SKIP, 1}, {1'003, 1'350, 1'405});
  const Rows rows = hand.run();
  EXPECT_EQ(rows[1], (Row{1'100, A, A, A, 1'350, kSkipped}));
  EXPECT_EQ(rows[2], (Row{1'200, A, A, A, 1'350, kSkipped}));
  EXPECT_EQ(rows[3][1], 1'350);
}

TEST(Periodic, ACallbackAtAReleaseHadTheThreadForItself) {
  Ticking hand(periodic(1, 4), {RTM_EVERY_TICK, RTM_SKIP, 1}, {1'003, 1'200, 1'405});
  const Rows rows = hand.run();
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[1], (Row{1'100, A, A, A, 1'200, kSkipped}));
  EXPECT_EQ(rows[2], (Row{1'200, 1'200, 1'200, 1'199, A, kServed}));
  EXPECT_EQ(rows[3], (Row{1'300, A, A, A, 1'405, kSkipped}));
}

// A callback at 1200 serves 1100, for which it is reported: 1200 comes when the thread is free again.
TEST(Periodic, AReleaseAtTheCallbackBeforeItFoundTheThreadFreeLater) {
  Ticking hand(periodic(1, 4), {RTM_EVERY_TICK, RTM_SKIP, 1}, {});
  const std::vector<std::pair<std::int64_t, std::int64_t>> ticks{
      {1'003, 1'000}, {1'200, 1'100}, {1'405, 1'400}};
  std::size_t tick = 0;
  hand.middleware.spin = [&](std::int64_t) {
    hand.clock.at_ns = ticks[tick].first;
    hand.middleware.fire(ticks[tick].second, ticks[tick].first);
    ++tick;
  };
  const Rows rows = hand.run();
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[2], (Row{1'200, A, A, A, 1'405, kSkipped}));
}

TEST(Periodic, ATickAfterTheLastReleaseEndsWithIt) {
  for (const std::int64_t tick_ns : {1'305, 1'405}) {  // the first release after the last, and one more
    Ticking hand(periodic(1, 2), {RTM_EVERY_TICK, RTM_SKIP, 1}, {1'003, tick_ns});
    EXPECT_EQ(hand.run(), (Rows{{1'000, 1'003, 1'000, 1'002, A, kWarm},
                                {1'100, A, A, A, tick_ns, kSkipped},
                                {1'200, A, A, A, tick_ns, kSkipped}}));
  }
}

TEST(Periodic, ThatIsInterruptedPassesOverAReleaseThatIsNow) {
  for (const std::int64_t end_ns : {1'299, 1'300}) {
    Ticking hand(periodic(1, 9), {RTM_EVERY_TICK, RTM_SKIP, 1}, {});
    int spins = 0;
    hand.middleware.spin = [&](std::int64_t) {
      hand.clock.at_ns = ++spins == 1 ? 1'200 : end_ns;
      if (spins == 1) return hand.middleware.fire(1'200, 1'200);
      hand.stop = true;
    };
    EXPECT_EQ(hand.run().size(), end_ns == 1'300 ? 2u : 1u);
  }
}

// Without a warm-up the window is open before the first callback; with one it is not.
TEST(Periodic, CountsUsageFromTheFirstMeasuredReleaseOn) {
  SKIP_UNDER_EMULATION();
  SKIP_UNDER_SANITIZERS();
  constexpr std::size_t kPage = 4096;
  for (const std::int64_t warm_up : {0, 1}) {
    ByHand hand(periodic(warm_up, 3 - warm_up));
    auto* pages = static_cast<volatile char*>(
        mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(const_cast<char*>(pages), 3 * kPage, MADV_NOHUGEPAGE);
    std::size_t touched = 0;
    hand.middleware.arm = [] {};
    hand.middleware.spin = [&](std::int64_t) {
      hand.clock.at_ns += 100;
      write_to(pages + touched++ * kPage);
      hand.middleware.fire();
    };
    hand.run();
    EXPECT_EQ(touched, 3u);
    EXPECT_EQ(hand.usage.to_json().find("minor_faults")->as_int(), warm_up == 0 ? 3 : 2);
    munmap(const_cast<char*>(pages), 3 * kPage);
  }
}

TEST(Periodic, ATickTooManyIsCountedAndServesNothing) {
  Ticking hand(periodic(1, 2), {RTM_EVERY_TICK, RTM_CATCH_UP, 1}, {1'003, 1'150, 1'160, 1'201});
  const Rows rows = hand.run();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1][1], 1'150);
  EXPECT_EQ(rows[2][1], 1'201);
  EXPECT_EQ(hand.counters.extra_callbacks, 1u);
}

using Types = std::vector<std::string>;

Types types_of(const Json::Array& warnings) {
  Types types;
  for (const Json& warning : warnings) types.push_back(warning.find("type")->as_string());
  return types;
}

TEST(Periodic, ThatFallsSilentIsGivenUpAfterTenPeriodsAndTenSeconds) {
  Ticking hand(periodic(1, 3), {RTM_EVERY_TICK, RTM_CATCH_UP, 0}, {1'000, 1'110});
  const Rows rows = hand.run();
  EXPECT_EQ(hand.clock.at_ns, 1'110 + 10 * 100 + 10 * kOneSecond);
  EXPECT_EQ(rows[1], (Row{1'100, 1'110, A, A, A, kServed}));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[2], (Row{1'200, A, A, A, hand.clock.at_ns, kSkipped}));
  EXPECT_EQ(rows[3], (Row{1'300, A, A, A, hand.clock.at_ns, kSkipped}));
  EXPECT_EQ(types_of(hand.measurement->warnings()), (Types{"grid_inferred", "timer_fell_silent"}));
  EXPECT_EQ(hand.watchdog.load(), INT64_MAX);
}

TEST(Periodic, ThatNeverCallsHasNoReleases) {
  Ticking hand(periodic(1, 3), {RTM_EVERY_TICK, RTM_CATCH_UP, 0}, {});
  EXPECT_EQ(hand.run(), Rows{});
  EXPECT_EQ(hand.fact("grid"), "null");
}

TEST(Periodic, ThatIsPolledFallsSilentToo) {
  ByHand hand(periodic(0, 2), RTM_POLL);
  hand.middleware.arm = [] {};
  hand.middleware.spin_some = [&] {
    hand.clock.at_ns += kOneSecond;
    if (hand.clock.at_ns == 3 * kOneSecond) hand.middleware.fire();
  };
  const Rows rows = hand.run();
  EXPECT_EQ(hand.clock.at_ns, 14 * kOneSecond);  // 13 s and ten periods have not passed at 13 s
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1][4], 14 * kOneSecond);
  EXPECT_EQ(types_of(hand.measurement->warnings()), (Types{"grid_inferred", "timer_fell_silent"}));
}

TEST(Periodic, AnOverrunPolicyThatItDoesNotHaveIsRefused) {
  Config config = periodic(0, 1);
  config.overrun = RTM_SKIP;
  ByHand hand(config);
  EXPECT_THROW(hand.measurement->set_up(), Failure);
  hand.middleware.traits.overrun = RTM_SKIP;
  EXPECT_NO_THROW(hand.measurement->set_up());
}

// The grid is that of the sleeps; a stall of three periods in one spin leaves two sleeps out.
TEST(Periodic, SleptForServesWhatHasPassedWithoutASleep) {
  ByHand hand(periodic(1, 9), RTM_SLEEP_THEN_SPIN_SOME);
  hand.middleware.arm = [] {};
  int spins = 0;
  hand.middleware.spin_some = [&] {
    hand.middleware.fire();
    if (++spins == 4) hand.clock.at_ns += 290;
  };
  const Rows rows = hand.run();
  ASSERT_EQ(rows.size(), 10u);
  EXPECT_EQ(hand.clock.sleeps.size(), 8u);
  for (std::size_t k = 0; k < rows.size(); ++k)
    EXPECT_EQ(rows[k][1], rows[k][0] + (k == 4 ? 190 : k == 5 ? 90 : 0)) << k;
}

}  // namespace
}  // namespace rtmeter
