#include "measure/ticks.hpp"

#include <gtest/gtest.h>

#include "rtmeter/adapter.h"

namespace rtmeter {
namespace {

using Rule = Ticks::Rule;

constexpr std::int64_t kPeriod = 100, kNothing = RTM_ABSENT;

TEST(Ticks, AReportedTimeBelongsToTheNearestRelease) {
  Ticks ticks(Rule::reported, kPeriod, 0);
  EXPECT_FALSE(ticks.known());
  EXPECT_EQ(ticks.serve(1'017, 1'000), 0);
  EXPECT_TRUE(ticks.known());
  EXPECT_EQ(ticks.grid().t0_ns, 1'000);  // what was reported, not when it came
  EXPECT_EQ(ticks.grid().period_ns, kPeriod);
  EXPECT_STREQ(ticks.t0_from(), "reported");
  EXPECT_EQ(ticks.serve(1'117, 1'149), 1);
  EXPECT_EQ(ticks.serve(1'217, 1'150), 2);
  EXPECT_EQ(ticks.serve(1'317, 1'251), 3);
  EXPECT_EQ(ticks.serve(1'417, 1'740), 7);
  EXPECT_EQ(ticks.next(), 8);
}

TEST(Ticks, AReportedTimeBelongsToTheLastReleaseThatIsNoMoreAfterItThanIsAllowed) {
  Ticks ticks(Rule::reported, kPeriod, 0, 6);
  EXPECT_EQ(ticks.serve(1'000, 1'000), 0);
  EXPECT_EQ(ticks.serve(1'100, 1'094), 1);
  EXPECT_EQ(ticks.serve(1'300, 1'293), 2);
  EXPECT_EQ(ticks.serve(1'400, 1'393), 3);
  EXPECT_EQ(ticks.serve(1'700, 1'694), 7);
}

TEST(Ticks, AnEarlierReleaseChangesNothing) {
  Ticks ticks(Rule::reported, kPeriod, 0);
  ticks.serve(1'000, 1'000);
  ticks.serve(1'300, 1'300);
  EXPECT_EQ(ticks.next(), 4);
  EXPECT_EQ(ticks.serve(1'310, 1'100), 1);
  EXPECT_EQ(ticks.next(), 4);
  EXPECT_EQ(ticks.serve(1'320, 1'300), 3);
  EXPECT_EQ(ticks.next(), 4);
  EXPECT_EQ(ticks.grid().t0_ns, 1'000);
}

TEST(Ticks, EveryTickCounts) {
  Ticks ticks(Rule::every_tick, kPeriod, 0);
  for (std::int64_t n = 0; n < 5; ++n) {
    EXPECT_EQ(ticks.next(), n);
    EXPECT_EQ(ticks.serve(1'000 + 170 * n, kNothing), n);
  }
  EXPECT_STREQ(ticks.t0_from(), "inferred");
}

// The earliest callback - k*T of the warm-up, to its last release.
TEST(Ticks, AnEstimatedGridIsTheEarliestOfTheWarmUpAndThenFrozen) {
  Ticks ticks(Rule::every_tick, kPeriod, 3);
  ticks.serve(1'020, kNothing);
  EXPECT_EQ(ticks.grid().t0_ns, 1'020);
  ticks.serve(1'110, kNothing);
  EXPECT_EQ(ticks.grid().t0_ns, 1'010);
  ticks.serve(1'207, kNothing);  // the warm-up's last
  EXPECT_EQ(ticks.grid().t0_ns, 1'007);
  ticks.serve(1'300, kNothing);
  EXPECT_EQ(ticks.grid().t0_ns, 1'007);
}

TEST(Ticks, ALaterCallbackDoesNotMoveTheGrid) {
  Ticks ticks(Rule::every_tick, kPeriod, 3);
  ticks.serve(1'000, kNothing);
  ticks.serve(1'150, kNothing);
  EXPECT_EQ(ticks.grid().t0_ns, 1'000);
}

TEST(Ticks, JumpsServeTheNextReleaseOrTheLatestThatPassed) {
  Ticks ticks(Rule::jumps, kPeriod, 1);
  EXPECT_EQ(ticks.serve(1'000, kNothing), 0);
  EXPECT_EQ(ticks.serve(1'090, kNothing), 1);  // early
  EXPECT_EQ(ticks.serve(1'299, kNothing), 2);  // before the release after it
  EXPECT_EQ(ticks.serve(1'400, kNothing), 4);  // at the release after it
  EXPECT_EQ(ticks.serve(1'950, kNothing), 9);
}

TEST(Ticks, OnAGivenGridAReportedTimeBelongsToTheFirstSleepThatEndsAtItOrAfter) {
  Ticks ticks(Rule::reported, kPeriod, 0);
  ticks.fix(2'000);
  EXPECT_TRUE(ticks.known());
  EXPECT_STREQ(ticks.t0_from(), "core");
  EXPECT_EQ(ticks.serve(2'000, 1'901), 0);
  EXPECT_EQ(ticks.serve(2'100, 2'000), 0);
  EXPECT_EQ(ticks.serve(2'100, 2'001), 1);
  EXPECT_EQ(ticks.serve(2'200, 2'100), 1);
  EXPECT_EQ(ticks.grid().t0_ns, 2'000);
}

TEST(Ticks, AGivenGridIsNotEstimated) {
  Ticks ticks(Rule::every_tick, kPeriod, 5);
  ticks.fix(2'000);
  ticks.serve(1'500, kNothing);
  EXPECT_EQ(ticks.grid().t0_ns, 2'000);
}

TEST(Ticks, AreCalledByTheirRule) {
  EXPECT_STREQ(Ticks(Rule::reported, 1, 0).name(), "reported");
  EXPECT_STREQ(Ticks(Rule::every_tick, 1, 0).name(), "every_tick");
  EXPECT_STREQ(Ticks(Rule::jumps, 1, 0).name(), "jumps");
}

TEST(Grid, TheLatestReleaseIsTheOneAtOrBefore) {
  const Grid grid{1'000, 100};
  const std::pair<std::int64_t, std::int64_t> cases[] = {{1'000, 0}, {1'099, 0}, {1'100, 1}, {999, -1},
                                                         {900, -1},  {899, -2},  {1'950, 9}};
  for (const auto& [at_ns, k] : cases) EXPECT_EQ(grid.latest(at_ns), k) << at_ns;
  EXPECT_EQ(grid.release_ns(7), 1'700);
  EXPECT_EQ(grid.release_ns(-1), 900);
}

TEST(Ticks, WhereNothingIsReportedTheCallbackTells) {
  Ticks ticks(Ticks::Rule::reported, kPeriod, 0);
  EXPECT_EQ(ticks.serve(1010, 1000), 0);
  EXPECT_EQ(ticks.serve(1105, kAbsent), 1);
  EXPECT_EQ(ticks.serve(1415, kAbsent), 4) << "the latest one passed";
  EXPECT_EQ(ticks.serve(1505, 1500), 5);
  EXPECT_EQ(ticks.serve(1507, 1500), 5) << "served already";
  EXPECT_EQ(ticks.next(), 6);
}

}  // namespace
}  // namespace rtmeter
