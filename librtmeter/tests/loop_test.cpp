// The measured path on scripted stamps: which release each wake-up serves, and what is recorded of it.
#include "loop.hpp"

#include <gtest/gtest.h>

#include <array>

#include "errors.hpp"
#include "loop_folder.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

constexpr std::int64_t kT = 1'000'000, kT0 = 5'000'000'000;

std::int64_t t0_ns = kT0;  // where the library sleeps, that of its grid

class LoopTest : public testing::Test {
 protected:
  LoopTest() {
    folder_ = directory_ / "loops";
    t0_ns = kT0;
    options_.folder = folder_.c_str();
    options_.warm_up_ns = 2 * kT;
    options_.on_late = [](void* context, std::int64_t k, std::int64_t release_ns, std::int64_t stamp_ns) {
      static_cast<LoopTest*>(context)->late_.push_back({k, release_ns, stamp_ns});
    };
    options_.context = this;
  }
  // The rows with their k: release, wake, done, free, status.
  template <typename Work>
  std::vector<Row> record(Work&& work) {
    Loop loop("arm", kT, options_);
    work(loop);
    loop.end(end_ns_);
    path_ = loop.folder();
    return rows_of_part(path_, "whole");
  }
  TemporaryDirectory directory_;
  std::string folder_, path_;
  rtm_loop_options options_ = RTM_LOOP_OPTIONS;
  std::int64_t end_ns_ = 0;  // before any deadline
  std::vector<Row> late_;
};

std::int64_t at(std::int64_t k, std::int64_t ns = 0) { return t0_ns + k * kT + ns; }
constexpr std::int64_t kWarm = kServed | kWarmUpFlag;

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

TEST_F(LoopTest, WhatIsStampedAfterTheEndGoesNowhere) {
  const auto rows = record([&](Loop& loop) {
    loop.wake(at(0, 10), at(0));
    loop.done(at(0, 20));
    loop.end(at(0, 30));
    loop.wake(at(1, 10), at(1));
    loop.done(at(1, 20));
  });
  EXPECT_EQ(rows.size(), 1u);
}

void three_jobs(Loop& loop, bool library_sleeps = false) {
  for (std::int64_t k = 0; k < 3; ++k) {
    if (k == 0 && library_sleeps)
      t0_ns = loop.sleep();
    else
      loop.wake(at(k, 10), at(k));
    loop.done(at(k, 20));
  }
}

// After three jobs: release 3, which was woken for, is lost, and those up to the last are skipped at the end.
void expect_lost_and_skipped(const std::vector<Row>& rows, std::int64_t wake_ns, std::int64_t last,
                             std::int64_t end_ns) {
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(last) + 1);
  EXPECT_EQ(rows[3], (Row{3, at(3), wake_ns, kAbsent, kAbsent, kLost}));
  for (std::int64_t k = 4; k <= last; ++k)
    EXPECT_EQ(rows[static_cast<std::size_t>(k)], (Row{k, at(k), kAbsent, kAbsent, end_ns, kSkipped}));
}

// A program that hangs until it is ended: its last job is lost, and what passed meanwhile is skipped.
TEST_F(LoopTest, AJobUnderWayAtTheEndThatIsLateIsLost) {
  const auto rows = record([this](Loop& loop) {
    three_jobs(loop, true);
    loop.wake(at(3, 10), at(3));
    end_ns_ = at(6);
  });
  expect_lost_and_skipped(rows, at(3, 10), 6, end_ns_);
  EXPECT_NE(file_content(files_of(path_, "whole-").front()).find(R"("unfinished":1)"), std::string::npos);
  EXPECT_EQ(bins_of(path_).find("missed")->as_int(), 4);
}

// It has not become free since: not when it woke, however late that was.
TEST_F(LoopTest, WhatPassedBeforeALostJobWokeCountsUntilTheEndToo) {
  const auto rows = record([this](Loop& loop) {
    three_jobs(loop, true);
    loop.wake(at(5, 10), at(3));
    end_ns_ = at(7);
  });
  expect_lost_and_skipped(rows, at(5, 10), 7, end_ns_);
}

TEST_F(LoopTest, AJobUnderWayAtTheEndOfTheWarmUpIsNotJudged) {
  const auto rows = record([this](Loop& loop) {
    t0_ns = loop.sleep();
    end_ns_ = at(1, kT + 1);
  });
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], (Row{0, at(0), rows[0][2], kAbsent, kAbsent, kLost | kWarmUpFlag}));
  EXPECT_EQ(rows[1], (Row{1, at(1), kAbsent, kAbsent, end_ns_, kSkipped | kWarmUpFlag}));
  EXPECT_EQ(rows[2], (Row{2, at(2), kAbsent, kAbsent, end_ns_, kSkipped}));
}

// Closed on purpose after a wake-up: what is in time, at the deadline too, is no miss; what the wake-up
// passed over is skipped all the same.
TEST_F(LoopTest, AJobUnderWayAtTheEndThatIsInTimeIsInNoCount) {
  options_.deadline_ns = 3 * kT;
  end_ns_ = at(8);
  const auto rows = record([](Loop& loop) {
    three_jobs(loop);
    loop.wake(at(5, 10), at(5));
  });
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[3], (Row{3, at(3), kAbsent, kAbsent, at(5, 10), kSkipped}));
  EXPECT_EQ(rows[4], (Row{4, at(4), kAbsent, kAbsent, at(5, 10), kSkipped}));
  EXPECT_NE(file_content(files_of(path_, "whole-").front()).find(R"("unfinished":0)"), std::string::npos);
}

// What a job passed over is skipped though no wake-up came after it, until the thread became free and no
// longer. Where the program catches up, or sleeps by itself, it could have served what passed: only what has
// missed its deadline is decided, and without due times what is not the latest.
TEST_F(LoopTest, WhatTheLastJobPassedOverIsSkipped) {
  struct Case {
    bool library_sleeps, due_told;
    std::uint32_t flags;
    std::int64_t deadline_ns, done_ns;
    std::size_t rows;
  };
  const std::int64_t half = kT / 2;
  for (const Case& one : {Case{true, true, 0, kT, 1, 6}, Case{true, true, 0, 4 * kT, 0, 6},
                          Case{true, true, RTM_LOOP_CATCH_UP, kT, 1, 5}, Case{false, true, 0, kT, 1, 5},
                          Case{false, true, 0, kT, 0, 4}, Case{false, true, 0, 4 * kT, 1, 4},
                          Case{false, false, 0, 4 * kT, 0, 5}, Case{false, false, 0, half, half, 5},
                          Case{false, false, 0, half, half + 1, 6}}) {
    t0_ns = kT0;
    options_.flags = one.flags;
    options_.deadline_ns = one.deadline_ns;
    const auto rows = record([&](Loop& loop) {
      if (one.due_told) {
        three_jobs(loop, one.library_sleeps);
      } else {
        for (std::int64_t k = 0; k < 3; ++k) loop.wake(at(k), kAbsent), loop.done(at(k, 20));
      }
      loop.wake(at(3, 10), one.due_told ? at(3) : kAbsent);
      loop.done(at(5, one.done_ns));
      end_ns_ = at(9);
    });
    const std::int64_t free = at(5, one.done_ns);
    ASSERT_EQ(rows.size(), one.rows) << one.library_sleeps << one.due_told << one.deadline_ns << free;
    EXPECT_EQ(rows[3], (Row{3, at(3), at(3, 10), free, kAbsent, kServed}));
    for (std::size_t i = 4; i < rows.size(); ++i) {
      const auto k = static_cast<std::int64_t>(i);
      EXPECT_EQ(rows[i], (Row{k, at(k), kAbsent, kAbsent, free, kSkipped}));
    }
  }
}

TEST_F(LoopTest, WhatCouldStillBeServedIsInNoCount) {
  for (const bool library_sleeps : {false, true}) {
    options_.flags = library_sleeps ? RTM_LOOP_CATCH_UP : 0;
    const auto rows = record([&](Loop& loop) {
      three_jobs(loop, library_sleeps);
      loop.wake(at(3, 10), at(3));
      end_ns_ = at(6);
    });
    ASSERT_EQ(rows.size(), 5u) << "release 5 is at its deadline";
    EXPECT_EQ(rows[3], (Row{3, at(3), at(3, 10), kAbsent, kAbsent, kLost}));
    EXPECT_EQ(rows[4], (Row{4, at(4), kAbsent, kAbsent, end_ns_, kSkipped}));
  }
}

// Of a due time of hours ago nobody knows what has passed since.
TEST_F(LoopTest, OfAnotherClocksDueTimesNothingIsSettledAtTheEnd) {
  constexpr std::int64_t kHours = 4'000'000'000'000;
  end_ns_ = at(3, kHours + kT);
  for (const bool working : {false, true}) {
    const auto rows = record([working](Loop& loop) {
      loop.wake(at(0), at(0));
      loop.done(at(0, 20));
      loop.wake(at(1, kHours), at(1));
      if (!working) loop.done(at(1, kHours + 20));
    });
    EXPECT_EQ(rows.size(), working ? 1u : 2u);
  }
}

TEST_F(LoopTest, WithoutAWakeUpNothingIsCounted) {
  end_ns_ = at(9);
  EXPECT_TRUE(record([](Loop&) {}).empty());
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
