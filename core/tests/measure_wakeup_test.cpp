#include <gtest/gtest.h>
#include <sys/mman.h>

#include "by_hand.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

// Releases at 100, 200, …; the sleep to 300 ends at 730.
struct Stalled : ByHand {
  explicit Stalled(std::optional<rtm_overrun> overrun)
      : ByHand([&] {
          Config with = config_by_hand(RTM_WAKEUP, 2, 8);
          with.overrun = overrun;
          return with;
        }()) {
    clock.late_ns = {{100, 7}, {300, 430}};
  }
};

TEST(Wakeup, ServesWhatHasPassedWithoutASleep) {
  Stalled hand(std::nullopt);
  EXPECT_EQ(hand.run(), (std::vector<Row>{{100, 107, kAbsent, kWarm},
                                          {200, 200, kAbsent, kWarm},
                                          {300, 730, kAbsent, kServed},
                                          {400, 730, kAbsent, kServed},
                                          {500, 730, kAbsent, kServed},
                                          {600, 730, kAbsent, kServed},
                                          {700, 730, kAbsent, kServed},
                                          {800, 800, kAbsent, kServed},
                                          {900, 900, kAbsent, kServed},
                                          {1000, 1000, kAbsent, kServed}}));
  EXPECT_EQ(hand.clock.sleeps, (std::vector<std::int64_t>{100, 200, 300, 800, 900, 1000}));
  EXPECT_EQ(hand.fact("overrun"), R"("catch_up")");
  EXPECT_EQ(hand.fact("grid"), R"({"t0_ns":100,"period_ns":100,"t0_from":"core"})");
}

TEST(Wakeup, PassesOverWhatHasPassedUnderSkip) {
  Stalled hand(RTM_SKIP);
  EXPECT_EQ(hand.run(), (std::vector<Row>{{100, 107, kAbsent, kWarm},
                                          {200, 200, kAbsent, kWarm},
                                          {300, 730, kAbsent, kServed},
                                          {400, kAbsent, 730, kSkipped},
                                          {500, kAbsent, 730, kSkipped},
                                          {600, kAbsent, 730, kSkipped},
                                          {700, kAbsent, 730, kSkipped},
                                          {800, 800, kAbsent, kServed},
                                          {900, 900, kAbsent, kServed},
                                          {1000, 1000, kAbsent, kServed}}));
  EXPECT_EQ(hand.clock.sleeps, (std::vector<std::int64_t>{100, 200, 300, 800, 900, 1000}));
  EXPECT_EQ(hand.fact("overrun"), R"("skip")");
}

TEST(Wakeup, ServesAReleaseThatIsNowUnderSkipToo) {
  Stalled hand(RTM_SKIP);
  hand.clock.late_ns = {{300, 100}};
  const std::vector<Row> rows = hand.run();
  EXPECT_EQ(rows[3], (Row{400, 400, kAbsent, kServed}));
  EXPECT_EQ(hand.clock.sleeps.size(), 9u);  // none to 400
}

TEST(Wakeup, AnInterruptedBacklogIsSkippedAndNotForgotten) {
  Stalled hand(std::nullopt);
  hand.clock.on_sleep = [&] { hand.stop = hand.clock.at_ns == 730; };
  EXPECT_EQ(hand.run(), (std::vector<Row>{{100, 107, kAbsent, kWarm},
                                          {200, 200, kAbsent, kWarm},
                                          {300, 730, kAbsent, kServed},
                                          {400, kAbsent, 730, kSkipped},
                                          {500, kAbsent, 730, kSkipped},
                                          {600, kAbsent, 730, kSkipped},
                                          {700, kAbsent, 730, kSkipped}}));
}

TEST(Wakeup, ABacklogEndsWithTheLastRelease) {
  Stalled hand(std::nullopt);
  hand.clock.late_ns = {{300, 700}};  // until the release at 1000, which is the last
  hand.clock.on_sleep = [&] { hand.stop = hand.clock.at_ns == 1000; };
  const std::vector<Row> rows = hand.run();
  ASSERT_EQ(rows.size(), 10u);
  EXPECT_EQ(rows.back(), (Row{1000, kAbsent, 1000, kSkipped}));
}

TEST(Wakeup, NothingComesAfterTheLastRelease) {
  Stalled hand(std::nullopt);
  hand.clock.late_ns = {{1000, 250}};
  EXPECT_EQ(hand.run().size(), 10u);
}

TEST(Wakeup, ASleepThatWasEndedServesNothing) {
  Stalled hand(std::nullopt);
  hand.clock.late_ns = {{500, -50}};
  hand.clock.on_sleep = [&] { hand.stop = hand.clock.at_ns == 450; };
  EXPECT_EQ(hand.run().size(), 4u);
}

TEST(Wakeup, AReleaseMetWhenAskedToEndIsServed) {
  Stalled hand(std::nullopt);
  hand.clock.late_ns = {};
  hand.clock.on_sleep = [&] { hand.stop = hand.clock.at_ns == 500; };
  const std::vector<Row> rows = hand.run();
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows.back(), (Row{500, 500, kAbsent, kServed}));
}

TEST(Wakeup, HasAnIdleNodeIfAsked) {
  for (const Before before : {Before::none, Before::init, Before::init_and_node}) {
    Config config = config_by_hand(RTM_WAKEUP, 0, 1);
    config.before = before;
    ByHand hand(config);
    hand.run();
    EXPECT_EQ(hand.middleware.nodes.size(), before == Before::init_and_node ? 1u : 0u);
  }
}

// The window opens with the first measured release: what a warm-up faults on is not in it.
TEST(Wakeup, CountsUsageFromTheFirstMeasuredReleaseOn) {
  ByHand(config_by_hand(RTM_WAKEUP, 3, 5))
      .run();  // the program's own pages, which are of a file, are mapped by this
  ByHand hand(config_by_hand(RTM_WAKEUP, 3, 5));
  constexpr std::size_t kPage = 4096;
  auto* pages = static_cast<volatile char*>(
      mmap(nullptr, 64 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  madvise(const_cast<char*>(pages), 64 * kPage, MADV_NOHUGEPAGE);
  std::size_t touched = 0;
  hand.clock.sleeps.reserve(64);
  hand.clock.on_sleep = [&] { write_to(pages + touched++ * kPage); };
  hand.run();
  EXPECT_EQ(touched, 8u);
  EXPECT_EQ(hand.usage.to_json().find("minor_faults")->as_int(), 5);
  munmap(const_cast<char*>(pages), 64 * kPage);
}

}  // namespace
}  // namespace rtmeter
