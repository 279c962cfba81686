// The measured path on scripted stamps: which release each wake-up serves, and what is recorded of it.
#include <array>

#include "errors.hpp"
#include "loop_fixture.hpp"

namespace rtmeter {
namespace {

TEST_F(LoopTest, EachJobHasARowOnTheGridOfItsDueTimes) {
  const auto rows = record([](Loop& loop) {
    for (std::int64_t k = 0; k < 4; ++k) {
      loop.wake(at(k, 30 + k), at(k));
      loop.done(at(k, 500 + k));
    }
  });
  const std::vector<Row> expected = {{0, at(0), at(0, 30), at(0, 500), kAbsent, kWarm},
                                     {1, at(1), at(1, 31), at(1, 501), kAbsent, kWarm},
                                     {2, at(2), at(2, 32), at(2, 502), kAbsent, kServed},
                                     {3, at(3), at(3, 33), at(3, 503), kAbsent, kServed}};
  EXPECT_EQ(rows, expected);
  EXPECT_TRUE(late_.empty());
}

// A program that begins its grid anew after an overrun, or sleeps for a period at a time, does not move it: a
// due time counts for the release before it. Up to a sixteenth of a period before one it is still that one's.
TEST_F(LoopTest, ADueTimeOffTheGridIsThatOfTheReleaseBeforeIt) {
  constexpr std::int64_t kEarly = kT / 16;
  const auto rows = record([](Loop& loop) {
    for (std::int64_t k = 0; k < 3; ++k) {
      loop.wake(at(k, 10), at(k));
      loop.done(at(k, 20));
    }
    for (const std::int64_t due : {at(3, kEarly), at(4, kEarly + 1), at(5, kT - kEarly - 1)}) {
      loop.wake(due + 10, due);
      loop.done(due + 20);
    }
    loop.wake(at(7, 10), at(7, -kEarly));
    loop.done(at(7, 20));
  });
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_EQ(rows[3], (Row{3, at(3), at(3, kEarly + 10), at(3, kEarly + 20), kAbsent, kServed}));
  EXPECT_EQ(rows[4], (Row{4, at(4), at(4, kEarly + 11), at(4, kEarly + 21), kAbsent, kServed}));
  EXPECT_EQ(rows[5], (Row{5, at(5), at(6, 9 - kEarly), at(6, 19 - kEarly), kAbsent, kServed}));
  EXPECT_EQ(rows[6][5], kSkipped);
  EXPECT_EQ(rows[7], (Row{7, at(7), at(7, 10), at(7, 20), kAbsent, kServed}));
  const std::string log = file_content(files_of(path_, "whole-").front());
  EXPECT_NE(log.find(R"("due_off_grid":2})"), std::string::npos);
  EXPECT_NE(log.find(R"("type":"due_off_grid")"), std::string::npos);
}

// Work that takes three periods: the releases within it are skipped and carry when the thread became free; of
// a sleep that took three periods, when it woke.
TEST_F(LoopTest, ReleasesThatWerePassedOverAreSkippedAndCarryFree) {
  const auto rows = record([](Loop& loop) {
    for (const auto& [k, wake, done] : std::vector<std::array<std::int64_t, 3>>{
             {0, 10, 20}, {1, 10, 20}, {2, 10, 2 * kT + 500'000}, {5, 10, 20}, {8, 10, 20}}) {
      loop.wake(at(k, wake), at(k));
      loop.done(at(k, done));
    }
  });
  ASSERT_EQ(rows.size(), 9u);
  const std::int64_t free = at(4, 500'000), woke = at(8, 10);
  EXPECT_EQ(rows[3], (Row{3, at(3), kAbsent, kAbsent, free, kSkipped}));
  EXPECT_EQ(rows[4], (Row{4, at(4), kAbsent, kAbsent, free, kSkipped}));
  EXPECT_EQ(rows[5], (Row{5, at(5), at(5, 10), at(5, 20), kAbsent, kServed}));
  EXPECT_EQ(rows[6], (Row{6, at(6), kAbsent, kAbsent, woke, kSkipped}));
  EXPECT_EQ(rows[7], (Row{7, at(7), kAbsent, kAbsent, woke, kSkipped}));
  // Release 2 by its end, then the first of each gap.
  EXPECT_EQ(late_, (std::vector<Row>{{2, at(2), at(4, 500'000)}, {3, at(3), at(5, 10)}, {6, at(6), woke}}));
}

TEST_F(LoopTest, WithoutDueTimesTheGridIsThatOfTheEarliestWakeUpOfTheWarmUp) {
  const auto rows = record([](Loop& loop) {
    for (const auto& [k, wake] :
         std::vector<std::array<std::int64_t, 2>>{{0, 90}, {1, 40}, {2, 70}, {3, 10}}) {
      loop.wake(at(k, wake), kAbsent);
      loop.done(at(k, 200));
    }
  });
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[2], (Row{2, at(2, 40), at(2, 70), at(2, 200), kAbsent, kServed}));
  EXPECT_EQ(rows[3], (Row{3, at(3, 40), at(3, 10), at(3, 200), kAbsent, kServed})) << "early is negative";
}

TEST_F(LoopTest, ALateReleaseIsToldOnceAndNeverInTheWarmUp) {
  options_.deadline_ns = 400;
  record([](Loop& loop) {
    loop.wake(at(0, 900), at(0));
    loop.done(at(0, 950));
    loop.wake(at(2, 10), at(2));
    loop.done(at(2, 400));  // at the deadline is in time
    loop.wake(at(3, 500), at(3));
    loop.done(at(3, 600));
    loop.wake(at(4, 10), at(4));
    loop.done(at(4, 401));
    loop.wake(at(5, 400), at(5));  // nor is a wake-up at it late
    loop.done(at(5, 400));
  });
  EXPECT_EQ(late_, (std::vector<Row>{{3, at(3), at(3, 500)}, {4, at(4), at(4, 401)}}));
}

TEST_F(LoopTest, WithoutADeadlineThePeriodIsIt) {
  record([](Loop& loop) {
    for (const auto& [k, wake, done] : std::vector<std::array<std::int64_t, 3>>{
             {0, 10, 20}, {1, 10, 20}, {2, 10, kT}, {4, kT, kT}, {6, 10, kT + 1}}) {
      loop.wake(at(k, wake), at(k));
      loop.done(at(k, done));
    }
  });
  EXPECT_EQ(late_.size(), 3u) << "releases 3 and 5 were passed over";
  EXPECT_EQ(late_.back(), (Row{6, at(6), at(6, kT + 1)}));
}

// What is not a whole number of periods counts as one more; a due time an hour ahead is believed, beyond not.
TEST_F(LoopTest, TheWarmUpEndsWithTheReleaseThatItReaches) {
  options_.warm_up_ns = 2 * kT + 1;
  constexpr std::int64_t kHourNs = 3'600'000'000'000;
  const auto rows = record([](Loop& loop) {
    for (std::int64_t k = 0; k < 4; ++k) {
      loop.wake(at(k, 10), at(k));
      loop.done(at(k, 20));
    }
    loop.wake(at(4, 10), at(4, 10) + kHourNs + 1);
    loop.done(at(4, 20));
  });
  ASSERT_EQ(rows.size(), 5u);
  for (std::size_t k = 0; k < 5; ++k) EXPECT_EQ(rows[k][5], k < 3 ? kWarm : std::int64_t{kServed}) << k;
  const std::string log = file_content(files_of(path_, "whole-").front());
  EXPECT_NE(log.find(R"("due_refused":1)"), std::string::npos);
  EXPECT_NE(log.find(R"("overrun":"skip")"), std::string::npos);
  EXPECT_NE(log.find(R"("miss_ratio":null)"), std::string::npos);
  EXPECT_NE(log.find(R"("warm_up":3)"), std::string::npos);
  EXPECT_EQ(log.find("grid_inferred"), std::string::npos) << "the program said when it was due";
}

// A first due time of 0, as of one that was not set yet, or by a clock that began later, begins no grid.
TEST_F(LoopTest, AFirstDueTimeMoreThanAnHourBackIsRefused) {
  constexpr std::int64_t kHourNs = 3'600'000'000'000;
  const std::int64_t now_ns = at(0, kHourNs + 1);
  const auto rows = record([now_ns](Loop& loop) {
    loop.wake(now_ns, at(0));
    loop.done(now_ns + 20);
  });
  EXPECT_EQ(rows.size(), 1u);
  const std::string log = file_content(files_of(path_, "whole-").front());
  EXPECT_NE(log.find(R"("due_refused":1)"), std::string::npos);
  EXPECT_NE(log.find(R"("t0_ns":)" + std::to_string(now_ns)), std::string::npos);
}

// A stall from the warm-up into what is judged: of the warm-up's releases nothing is told, of the first
// judged one that was skipped it is; a late one is told of though nothing that is judged was skipped.
TEST_F(LoopTest, WhatIsSkippedFromTheWarmUpOnIsTold) {
  for (const std::int64_t back : {2, 5}) {
    late_.clear();
    record([back](Loop& loop) {
      loop.wake(at(0, 10), at(0));
      loop.done(at(0, 20));
      loop.wake(at(back, kT + 1), at(back));
    });
    const std::int64_t first = back == 2 ? back : 2;
    EXPECT_EQ(late_, (std::vector<Row>{{first, at(first), at(back, kT + 1)}}));
  }
}

// A wake-up without its end is lost, later than anything; an end without a wake-up is counted; so is a second
// wake-up for one release, and a due time that can only be another clock's.
TEST_F(LoopTest, WhatAProgramForgetsIsCounted) {
  const auto rows = record([](Loop& loop) {
    for (std::int64_t k = 0; k < 3; ++k) {
      loop.wake(at(k, 10), at(k));
      loop.done(at(k, 20));
    }
    loop.done(at(2, 30));
    loop.wake(at(3, 10), at(3));
    loop.wake(at(4, 10), at(4));
    loop.done(at(4, 20));
    loop.wake(at(4, 40), at(4));
    loop.wake(at(5, 10), 1'700'000'000'000'000'000);
    loop.done(at(5, 20));
  });
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[3], (Row{3, at(3), at(3, 10), kAbsent, kAbsent, kLost}));
  EXPECT_EQ(rows[5], (Row{5, at(5), at(5, 10), at(5, 20), kAbsent, kServed}));
  const std::string log = file_content(files_of(path_, "whole-").front());
  EXPECT_NE(
      log.find(R"("counters":{"overflow":0,"extra_wakes":1,"stray_dones":1,"unfinished":1,"due_refused":1,)"
               R"("due_off_grid":0})"),
      std::string::npos);
  EXPECT_NE(log.find("due_of_another_clock"), std::string::npos);
}

std::string refusal(const char* name, std::int64_t period_ns, const rtm_loop_options& options) {
  try {
    const Loop loop(name, period_ns, options);
  } catch (const Failure& failure) {
    return failure.field() + "=" + failure.value();
  }
  return "opened";
}

TEST_F(LoopTest, WhatCannotBeIsRefusedByFieldAndValue) {
  EXPECT_EQ(refusal("../arm", kT, options_), "name=../arm");
  EXPECT_EQ(refusal("", kT, options_), "name=");
  EXPECT_EQ(refusal(".arm", kT, options_), "name=.arm");
  EXPECT_EQ(refusal(std::string(64, 'a').c_str(), kT, options_), "opened");
  EXPECT_EQ(refusal(std::string(65, 'a').c_str(), kT, options_), "name=" + std::string(65, 'a'));
  EXPECT_EQ(refusal("arm", 0, options_), "period_ns=0");
  EXPECT_EQ(refusal("arm", 999, options_), "period_ns=999");
  EXPECT_EQ(refusal("arm", 1000, options_), "opened");
  EXPECT_EQ(refusal("arm", std::int64_t{1} << 56, options_), "period_ns=72057594037927936");
  EXPECT_EQ(refusal("arm", std::int64_t{1} << 60, options_), "period_ns=1152921504606846976");
  options_.miss_ratio = 1.0;
  EXPECT_EQ(refusal("arm", kT, options_), "miss_ratio=1.000000");
  options_.miss_ratio = 0;
  options_.flags = 9;
  EXPECT_EQ(refusal("arm", kT, options_), "flags=9");
  options_.flags = 0;
  options_.folder = "/proc/none";
  EXPECT_EQ(refusal("arm", kT, options_), "folder=/proc/none/arm");
}

TEST_F(LoopTest, TwoLoopsOfOneNameAreRefusedUntilTheFirstIsClosed) {
  {
    Loop first("arm", kT, options_);
    EXPECT_EQ(refusal("arm", kT, options_), "name=arm");
    EXPECT_EQ(refusal("leg", kT, options_), "opened");
    first.end(first.now_ns());
  }
  EXPECT_EQ(refusal("arm", kT, options_), "opened");
}

}  // namespace
}  // namespace rtmeter
