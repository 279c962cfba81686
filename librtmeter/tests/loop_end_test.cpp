// What becomes of a loop's last job, and of what it passed over, when the loop is closed.
#include "loop_fixture.hpp"

namespace rtmeter {
namespace {

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

}  // namespace
}  // namespace rtmeter
