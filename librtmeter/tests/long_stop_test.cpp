// A loop that stood still: what passed meanwhile is kept as if each release had been taken by itself.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "errors.hpp"
#include "header.hpp"
#include "keeper.hpp"
#include "log/recorder.hpp"
#include "loop_folder.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

constexpr std::int64_t kSecond = 1'000'000'000, kPeriod = kSecond / 250, kT0 = 7 * kSecond;
constexpr std::int64_t kWarmUp = 20'000, kWhole = 320 * kSecond + 8;

std::int64_t at(std::int64_t k, std::int64_t ns = 0) { return kT0 + k * kPeriod + ns; }

struct Loop {
  explicit Loop(std::int64_t late_bytes = 1 << 28)
      : keeper({directory / "", kPeriod, kPeriod / 2, kWarmUp, kWhole, late_bytes,
                loop_header("arm", kPeriod, kPeriod / 2, 0, kWarmUp)}) {}
  void job(std::int64_t k, std::int64_t done_ns) {
    const std::int64_t status = k < kWarmUp ? kServed | kWarmUpFlag : std::int64_t{kServed};
    const std::int64_t row[JobRow::kColumns] = {k, at(k), at(k, 10'000), done_ns, status};
    keeper.append(row, 1);
  }
  void usual(std::int64_t k) { job(k, at(k, 20'000)); }
  std::vector<Row> rows(const char* part, std::size_t columns = 5) const {
    return rows_of_part(directory / "", part, columns);
  }
  std::int64_t counted(const char* name) const { return bins_of(directory / "").find(name)->as_int(); }

  TemporaryDirectory directory;
  Keeper keeper;
};

// Its job ended within the stop, minutes before the next one woke: the free moment changes there.
TEST(LongStop, IsKeptAsIfEachReleaseHadBeenWrittenByItself) {
  constexpr std::int64_t kNext = 97'000, kTotal = kNext + 2;
  const std::int64_t free = at(40'000, 500), woke = at(kNext, 10'000);
  Loop loop;
  loop.job(0, free);
  loop.usual(kNext);
  loop.usual(kNext + 1);
  loop.keeper.finish(Json::object());

  const auto expected = [&](std::int64_t k) -> Row {
    if (k >= kNext) return {k, at(k), at(k, 10'000), at(k, 20'000), kAbsent, kServed};
    const std::int64_t status = k < kWarmUp ? kSkipped | kWarmUpFlag : std::int64_t{kSkipped};
    return {k, at(k), kAbsent, kAbsent, k <= 40'000 ? free : woke, status};
  };
  const auto late = loop.rows("late"), whole = loop.rows("whole");
  ASSERT_EQ(late.size(), static_cast<std::size_t>(kTotal - kWarmUp + Keeper::kSurroundings));
  for (std::size_t i = 0; i < late.size(); ++i)
    ASSERT_EQ(late[i], expected(kWarmUp - Keeper::kSurroundings + static_cast<std::int64_t>(i)));
  ASSERT_GE(whole.size(), static_cast<std::size_t>(kWhole / kPeriod));
  ASSERT_LE(whole.size(), static_cast<std::size_t>((kWhole + kWhole / Keeper::kSegments) / kPeriod + 2));
  for (std::size_t i = whole.size(); i-- > 0;)
    ASSERT_EQ(whole[i], expected(kTotal - static_cast<std::int64_t>(whole.size() - i)));

  Bins bins;
  std::vector<Row> of_blocks;  // released, missed, latest and its k
  for (std::int64_t k = kWarmUp; k < kTotal; ++k) {
    const Row row = expected(k);
    const std::int64_t late_ns = (row[5] == kServed ? row[3] : row[4]) - row[1];
    bins.add(k, late_ns);
    const auto block = static_cast<std::size_t>((k - kWarmUp) * kPeriod / Keeper::kBlockNs);
    if (block == of_blocks.size()) of_blocks.push_back({0, 0, INT64_MIN, 0});
    Row& one = of_blocks[block];
    ++one[0];
    one[1] += row[5] == kServed ? 0 : 1;
    if (late_ns > one[2]) one[2] = late_ns, one[3] = k;
  }
  EXPECT_EQ(bins_of(loop.directory / "").find("quantities")->find("completion")->dump(),
            bins.to_json().dump());
  EXPECT_EQ(loop.counted("rows"), kTotal);
  EXPECT_EQ((std::vector{loop.counted("served"), loop.counted("skipped"), loop.counted("lost"),
                         loop.counted("missed")}),
            (std::vector<std::int64_t>{2, kNext - kWarmUp, 0, kNext - kWarmUp}));
  std::vector<Row> in_blocks(of_blocks.size(), {0, 0, INT64_MIN, 0});
  for (const Row& row : loop.rows("blocks", 6)) {
    Row& one = in_blocks.at(static_cast<std::size_t>(row[1]));
    one[0] += row[2];
    one[1] += row[3];
    if (row[4] > one[2]) one[2] = row[4], one[3] = row[5];
  }
  EXPECT_EQ(in_blocks, of_blocks);
}

// Of ten days only what is kept of them is written: in full frames, and none of the logs that the next ones
// would let go again, each of which would cut a block.
TEST(LongStop, OfDaysTakesAFewFrames) {
  constexpr std::int64_t kNext = 216'000'000, kDays = kNext * kPeriod;
  Loop loop(20'000);
  loop.usual(0);
  loop.usual(kNext);
  loop.keeper.finish(Json::object());
  EXPECT_EQ(loop.counted("rows"), kNext + 1);
  EXPECT_EQ(loop.counted("skipped"), kNext - kWarmUp);
  EXPECT_LE(loop.rows("blocks", 6).size(), static_cast<std::size_t>(kDays / Keeper::kBlockNs) + 12);
  std::uint32_t fullest = 0;
  for (const Frame& frame : read_sample_log(files_of(loop.directory / "", "late-").front()).frames)
    fullest = std::max(fullest, frame.row_count);
  EXPECT_EQ(fullest, 8192u);
}

// A disk that is full, and then is not; or as much as late releases may have of it: each is kept or counted.
TEST(LongStop, CountsWhatItCannotKeep) {
  constexpr std::int64_t kNext = 100'000;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  std::int64_t most = 1 << 28;
  for (const bool full : {true, false}) {
    Loop loop(most);
    loop.usual(0);
    loop.job(kWarmUp, at(kWarmUp, kPeriod));  // so that the log of late ones is there
    loop.keeper.flush();
    const auto bytes = std::filesystem::file_size(files_of(loop.directory / "", "late-").front());
    const rlimit limit{full ? bytes + 1'000 : before.rlim_cur, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    loop.usual(kNext);
    setrlimit(RLIMIT_FSIZE, &before);
    loop.usual(kNext + 20'000);
    if (full)
      EXPECT_THROW(loop.keeper.finish(Json::object()), Failure);
    else
      loop.keeper.finish(Json::object());
    std::int64_t kept = 0;
    for (const Row& row : loop.rows("late")) kept += row[5] == kSkipped || row[3] == row[1] + kPeriod ? 1 : 0;
    EXPECT_GT(kept, 1);
    EXPECT_GT(loop.counted("late_only_counted"), 0);
    EXPECT_EQ(loop.counted("missed"), kept + loop.counted("late_only_counted")) << full;
    EXPECT_EQ(loop.counted("late_without_surroundings"), full ? 0 : kept - 1);
    most = static_cast<std::int64_t>(bytes) + 1'000;
  }
}

}  // namespace
}  // namespace rtmeter
