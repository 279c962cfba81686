// What is kept of a long run: simulated rows, so that a year takes seconds.
#include "keeper.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>

#include "errors.hpp"
#include "header.hpp"
#include "log/recorder.hpp"
#include "loop_folder.hpp"
#include "sized.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

constexpr std::int64_t kSecond = 1'000'000'000, kHour = 3600 * kSecond, kT0 = 7 * kSecond;

struct Simulation {
  Simulation(std::int64_t period_ns, std::int64_t whole_ns, std::int64_t late_bytes = 1 << 28)
      : period(period_ns), keeper({directory / "", period_ns, period_ns / 2, 0, whole_ns, late_bytes,
                                   loop_header("arm", period_ns, period_ns / 2, 0, 0)}) {}
  void job(std::int64_t k, std::int64_t wake_ns, std::int64_t done_ns) {
    const std::int64_t release = kT0 + k * period;
    const std::int64_t row[JobRow::kColumns] = {k, release, release + wake_ns, release + done_ns, kServed};
    keeper.append(row, 1);
  }
  std::string folder() const { return directory / ""; }

  TemporaryDirectory directory;
  std::int64_t period;
  Keeper keeper;
};

TEST(Bins, AreThoseOfTheDefinition) {
  EXPECT_EQ(bin_of(0), 0);
  EXPECT_EQ(bin_of(63), 63);
  EXPECT_EQ(bin_of(64), 64);
  EXPECT_EQ(bin_of(127), 127);
  EXPECT_EQ(bin_of(128), 128);
  EXPECT_EQ(bin_of(129), 128);
  EXPECT_EQ(bin_of(130), 129);
  EXPECT_EQ(bin_of(1'000'000), 64 * 14 + (1'000'000 >> 13) - 64);
  EXPECT_EQ(bin_of(INT64_MAX), 64 * 57 + 127 - 64);
  EXPECT_EQ(bin_of(-1), -1);
  EXPECT_EQ(bin_of(-64), -64);
  EXPECT_EQ(bin_of(-65), -65);
  EXPECT_EQ(bin_of(INT64_MIN), -1 - bin_of(INT64_MAX));
}

// What is watched by a sanitizer takes much longer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kReducedS = 200, kDays = 30;
#else
constexpr std::int64_t kReducedS = 20, kDays = 365;
#endif

// A year: the last day is there whole, every late release with its neighbours, and all else in the bins. What
// lies on the disk stops growing with the first days, but for what was late.
TEST(AYear, HasABoundedDiskAndEveryLateRelease) {
  const std::int64_t period = sized("s between releases", kReducedS, 2) * kSecond;  // fewer is more
  const std::int64_t day = 24 * kHour / period, total = kDays * day, every = total / 40;
  Simulation year(period, 24 * kHour);
  std::vector<std::int64_t> late;
  std::uintmax_t of_first_days = 0;
  for (std::int64_t k = 0; k < total; ++k) {
    const bool is_late = k % every == every / 2;
    if (is_late) late.push_back(k);
    year.job(k, 50'000 + k % 977, is_late ? period / 2 + 1 + k : 300'000 + k % 9973);
    if (k == 4 * day) of_first_days = bytes_of(year.folder());
  }
  year.keeper.finish(Json::object());

  const auto rows = rows_of_part(year.folder(), "late");
  std::vector<std::int64_t> kept;
  for (const Row& row : rows)
    if (row[3] - row[1] > period / 2) kept.push_back(row[0]);
  EXPECT_EQ(kept, late);
  EXPECT_EQ(rows.size(), late.size() * (2 * Keeper::kSurroundings + 1)) << "with 64 releases on either side";
  EXPECT_EQ(rows[64], (Row{late[0], kT0 + late[0] * period, kT0 + late[0] * period + 50'000 + late[0] % 977,
                           kT0 + late[0] * period + period / 2 + 1 + late[0], kAbsent, kServed}));

  const auto whole = rows_of_part(year.folder(), "whole");
  EXPECT_GE(static_cast<std::int64_t>(whole.size()), day);
  EXPECT_LE(static_cast<std::int64_t>(whole.size()), day + day / Keeper::kSegments + 1);
  EXPECT_EQ(whole.back()[0], total - 1);
  EXPECT_EQ(whole.front()[0], total - static_cast<std::int64_t>(whole.size())) << "without a hole";

  const Json bins = bins_of(year.folder());
  EXPECT_EQ(bins.find("rows")->as_int(), total);
  EXPECT_EQ(bins.find("missed")->as_int(), static_cast<std::int64_t>(late.size()));
  EXPECT_EQ(bins.find("late_only_counted")->as_int(), 0);
  const Json& completion = *bins.find("quantities")->find("completion");
  EXPECT_EQ(completion.find("n")->as_int(), total);
  EXPECT_EQ(completion.find("max_k")->as_int(), late.back());
  EXPECT_EQ(completion.find("max_ns")->as_int(), period / 2 + 1 + late.back());
  std::int64_t counted = 0;
  for (const Json& bin : completion.find("bins")->as_array()) counted += bin.as_array()[1].as_int();
  EXPECT_EQ(counted, total);

  std::int64_t in_blocks = 0, missed_in_blocks = 0;
  for (const Row& row : rows_of_part(year.folder(), "blocks", 6))
    in_blocks += row[2], missed_in_blocks += row[3];
  EXPECT_EQ(in_blocks, total) << "each release is in a block of five minutes";
  EXPECT_EQ(missed_in_blocks, static_cast<std::int64_t>(late.size()));

  std::uintmax_t for_good = 0;
  for (const char* part : {"late-", "blocks-"})
    for (const std::string& file : files_of(year.folder(), part))
      for_good += std::filesystem::file_size(file);
  EXPECT_LE(bytes_of(year.folder()), of_first_days * 3 / 2 + for_good);
}

// What no compression makes smaller.
std::int64_t noise(std::int64_t k) {
  auto x = static_cast<std::uint64_t>(k + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  return static_cast<std::int64_t>((x ^ (x >> 27)) >> 44);
}

// Where everything is late the disk is bounded all the same, and what is not kept is counted.
TEST(LateReleases, AreKeptUpToABoundAndThenCounted) {
  constexpr std::int64_t kBound = 200'000, kTotal = 60'000;
  Simulation run(kSecond / 1000, kHour, kBound);
  for (std::int64_t k = 0; k < kTotal; ++k) run.job(k, noise(k), 600'000 + noise(k + kTotal));
  run.keeper.finish(Json::object());
  std::uintmax_t bytes = 0;
  for (const std::string& file : files_of(run.folder(), "late-")) bytes += std::filesystem::file_size(file);
  EXPECT_LE(bytes, 2u * kBound) << "a frame and the header may come on top";
  const Json bins = bins_of(run.folder());
  const auto kept = static_cast<std::int64_t>(rows_of_part(run.folder(), "late").size());
  EXPECT_GT(bins.find("late_without_surroundings")->as_int(), 0);
  EXPECT_GT(bins.find("late_only_counted")->as_int(), 0);
  EXPECT_EQ(kept + bins.find("late_only_counted")->as_int(), kTotal) << "each is kept or counted";
  EXPECT_EQ(bins.find("missed")->as_int(), kTotal);
}

// A disk that is full for a while: the bins go on, whole logs begin again, and the end says it.
TEST(AFullDisk, IsSaidAtTheEndAndWhatComesLaterIsKept) {
  Simulation run(kSecond / 1000, kHour);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  for (std::int64_t k = 0; k < 60'000; ++k) {
    if (k == 10'000 || k == 30'000) {
      run.keeper.flush();
      const rlimit limit{k == 10'000 ? rlim_t{1000} : before.rlim_cur, before.rlim_max};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    run.job(k, 50'000, 100'000);
  }
  EXPECT_THROW(run.keeper.finish(Json::object()), Failure);
  const auto whole = rows_of_part(run.folder(), "whole");
  EXPECT_EQ(whole[9'999][0], 9'999) << "what was there before is";
  EXPECT_EQ(whole.back()[0], 59'999);
  EXPECT_LT(whole.size(), 60'000u);
  EXPECT_EQ(bins_of(run.folder()).find("quantities")->find("completion")->find("n")->as_int(), 60'000);
}

// It is first seen full where a segment ends: one batch, after a pause, goes beyond it.
TEST(AFullDisk, IsSaidAtTheEndWhereASegmentEndsOnIt) {
  Simulation run(kSecond / 1000, 800 * kSecond, 0);  // none of what is late
  run.job(0, 50'000, 100'000);
  run.keeper.flush();
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  run.job(150'000, 50'000, 100'000);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THROW(run.keeper.finish(Json::object()), Failure);
  EXPECT_EQ(bins_of(run.folder()).find("quantities")->find("completion")->find("n")->as_int(), 150'001);
}

// Not with each release that is late, which would take long where many were skipped.
TEST(AFullDisk, IsTriedAgainTenSecondsLater) {
  Simulation run(kSecond / 1000, kHour);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{16, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  for (std::int64_t k = 0; k < 9'000; ++k) run.job(k, 50'000, 900'000);
  setrlimit(RLIMIT_FSIZE, &before);
  for (std::int64_t k = 9'000; k < 12'000; ++k) run.job(k, 50'000, 900'000);
  EXPECT_THROW(run.keeper.finish(Json::object()), Failure);
  const auto kept = rows_of_part(run.folder(), "late");
  EXPECT_EQ(kept.front()[0], 10'000);
  EXPECT_EQ(kept.size(), 2'000u);
  EXPECT_EQ(bins_of(run.folder()).find("late_only_counted")->as_int(), 10'000);
}

// Of three late releases far apart the first two are in frames: what a disk that is full by the end has no
// room for is the third.
TEST(AFullDisk, HasWhatItHasAndTheRestIsCounted) {
  std::signal(SIGXFSZ, SIG_IGN);
  Simulation run(kSecond / 1000, kHour);
  for (std::int64_t k = 0; k <= 600; ++k) run.job(k, 50'000, k % 300 == 0 ? 900'000 : 100'000);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto used = std::filesystem::file_size(files_of(run.folder(), "late-").front());
  const rlimit limit{used + 16, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_THROW(run.keeper.finish(Json::object()), Failure);
  setrlimit(RLIMIT_FSIZE, &before);
  std::int64_t kept = 0;
  for (const Row& row : rows_of_part(run.folder(), "late")) kept += row[3] == row[1] + 900'000 ? 1 : 0;
  EXPECT_EQ(kept, 2);
  EXPECT_EQ(bins_of(run.folder()).find("late_only_counted")->as_int(), 1);
}

// What cannot be written keeps nothing else from its end.
TEST(AFullDisk, WithoutItsBinsKeepsTheLogs) {
  Simulation run(kSecond / 1000, kHour);
  std::filesystem::create_directory(run.folder() + "/bins.json.new");
  for (std::int64_t k = 0; k < 1'000; ++k) run.job(k, 50'000, k == 500 ? 2'000'000 : 100'000);
  EXPECT_THROW(run.keeper.finish(Json::object()), Failure);
  for (const char* part : {"whole-", "late-", "blocks-"}) {
    const auto files = files_of(run.folder(), part);
    ASSERT_EQ(files.size(), 1u) << part;
    EXPECT_EQ(read_sample_log(files.front()).frames.back().kind, 'E') << part;
  }
}

// Rows as the measured thread hands them over, with a warm-up of two releases and a deadline of half a
// period.
class Rows : public testing::Test {
 protected:
  static constexpr std::int64_t kPeriod = kSecond / 1000, kWarmUp = 2;
  static std::int64_t at(std::int64_t k, std::int64_t ns = 0) { return kT0 + k * kPeriod + ns; }

  void job(std::int64_t k, std::int64_t wake, std::int64_t done, std::int64_t status = kServed) {
    const std::int64_t row[JobRow::kColumns] = {k, at(k), wake, done,
                                                k < kWarmUp ? status | kWarmUpFlag : status};
    keeper_.append(row, 1);
  }
  void usual(std::int64_t k) { job(k, at(k, 10'000), at(k, 20'000)); }
  std::vector<Row> kept(const char* part = "whole", std::size_t columns = 5) {
    keeper_.finish(Json::object());
    return rows_of_part(directory_ / "", part, columns);
  }
  std::int64_t counted(const char* name) { return bins_of(directory_ / "").find(name)->as_int(); }

  TemporaryDirectory directory_;
  Keeper keeper_{{directory_ / "", kPeriod, kPeriod / 2, kWarmUp, kHour, 1 << 28,
                  loop_header("arm", kPeriod, kPeriod / 2, 0, kWarmUp)}};
};

// A thread that became free just at a release was at work until then; one that never said that its work had
// ended, until it was woken again.
TEST_F(Rows, OfReleasesThatPassedSayWhenTheThreadWasFree) {
  usual(0);
  job(1, at(1, 10'000), at(2));
  job(3, at(3, 40'000), at(3, 50'000));
  job(4, at(5, 5), kAbsent, kLost);
  job(6, at(6, 40'000), at(6, 50'000));
  const auto rows = kept();
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(rows[2], (Row{2, at(2), kAbsent, kAbsent, at(2), kSkipped}));
  EXPECT_EQ(rows[5], (Row{5, at(5), kAbsent, kAbsent, at(5, 5), kSkipped}));
}

TEST_F(Rows, OfTheWarmUpAreToldAndNotCounted) {
  job(4, at(4, 10'000), at(4, 20'000));
  const auto rows = kept();
  ASSERT_EQ(rows.size(), 5u);
  for (std::int64_t k = 0; k < 4; ++k)
    EXPECT_EQ(rows[static_cast<std::size_t>(k)][5], k < kWarmUp ? kSkipped | kWarmUpFlag : kSkipped) << k;
  EXPECT_EQ(counted("skipped"), 2);
  EXPECT_EQ(counted("rows"), 5);
}

// At the deadline is in time; what was skipped or lost is missed, however soon the thread was free.
TEST_F(Rows, MissTheDeadlineLateSkippedOrLost) {
  usual(0);
  usual(1);
  job(2, at(2, 10'000), at(2, kPeriod / 2));
  job(3, at(3, 10'000), at(3, kPeriod / 2 + 1));
  job(4, at(4, 10'000), at(5, 100));
  job(6, at(6, 90'000), kAbsent, kLost);
  const auto blocks = kept("blocks", 6);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0], (Row{0, 0, 5, 4, INT64_MAX, 6, kServed})) << "what is lost is later than anything";
  EXPECT_EQ(counted("missed"), 4);
  EXPECT_EQ((std::vector{counted("served"), counted("skipped"), counted("lost")}),
            (std::vector<std::int64_t>{3, 1, 1}));
  const Json bins = bins_of(directory_ / "");
  const Json& latency = *bins.find("quantities")->find("latency");
  EXPECT_EQ(latency.find("n")->as_int(), 4) << "a lost one has none";
  EXPECT_EQ(latency.find("min_ns")->as_int(), 100) << "of a release that passed, until the thread was free";
  EXPECT_EQ(latency.find("max_ns")->as_int(), 10'000);
  EXPECT_EQ(latency.find("max_k")->as_int(), 2) << "the first of equal ones";
  EXPECT_EQ(bins.find("quantities")->find("completion")->find("n")->as_int(), 4) << "a lost one has none";
  std::int64_t binned = 0;
  for (const Json& bin : latency.find("bins")->as_array()) binned += bin.as_array()[1].as_int();
  EXPECT_EQ(binned, 4) << "lost is a count of its own beside the bins";
}

// exit() may come in another thread, between a job's row and what says that it is over.
TEST_F(Rows, OfAJobWhoseEndCameAreNotLostAtTheEnd) {
  for (std::int64_t k = 0; k < 3; ++k) usual(k);
  const std::int64_t open[JobRow::kColumns] = {2, at(2), at(2, 10'000), kAbsent, kLost};
  EXPECT_FALSE(keeper_.settle(open, at(9), 0));
  EXPECT_EQ(kept().size(), 3u);
}

std::size_t allocated() {
  const auto memory = mallinfo2();
  return memory.uordblks + memory.hblkhd;
}

// A process that locks its memory has what was ever taken: a stop of minutes takes no more than one of
// seconds.
TEST_F(Rows, OfALongStopTakeNoMoreMemory) {
  usual(0);
  usual(10'000);
  const std::size_t before = allocated();
  usual(300'000);
  EXPECT_LT(allocated(), before + (1u << 20));
  EXPECT_EQ(kept().size(), 300'001u);
}

// The latest release of a block is named, wherever it lies in it.
TEST_F(Rows, OfABlockHaveTheirLatestNamed) {
  for (std::int64_t k = 0; k < 10; ++k) job(k, at(k, 10'000), at(k, k == 6 ? 90'000 : 20'000));
  const auto blocks = kept("blocks", 6);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0], (Row{0, 0, 8, 0, 90'000, 6, kServed}));
}

// Whenever a segment has ended, so that a program that is killed then leaves it, what the bins count is in
// the blocks' log; the last one is whole once all has ended.
TEST_F(Rows, OfBlocksAreOnTheDiskOnceTheBinsAre) {
  const std::int64_t segment = kHour / kPeriod / Keeper::kSegments;
  for (std::int64_t k = 0; k <= segment; ++k) usual(k);
  const auto released = [&] {
    std::int64_t sum = 0;
    for (const Row& row : rows_of_part(directory_ / "", "blocks", 6)) sum += row[2];
    return sum;
  };
  EXPECT_EQ(counted("rows"), segment);
  EXPECT_EQ(released(), segment - kWarmUp);
  keeper_.finish(Json::object());
  EXPECT_EQ(released(), segment + 1 - kWarmUp);
  const auto frames = read_sample_log(files_of(directory_ / "", "blocks-").front()).frames;
  EXPECT_NE(frames.back().kind, 'R') << "it says that it is whole";
}

}  // namespace
}  // namespace rtmeter
