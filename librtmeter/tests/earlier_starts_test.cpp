// The folders of earlier starts, beside which a loop keeps its own.
#include <dirent.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "header.hpp"
#include "keeper.hpp"
#include "log/recorder.hpp"
#include "loop_folder.hpp"

namespace {

int readings_until_it_fails = -1;  // of a directory; never

}  // namespace

// A file system that goes wrong, as one of the network may.
extern "C" dirent* failing_readdir(DIR* directory) __asm__("readdir");  // whatever size its offsets have
extern "C" dirent* failing_readdir(DIR* directory) {
  static const auto real = reinterpret_cast<dirent* (*)(DIR*)>(dlsym(RTLD_NEXT, "readdir"));
  if (readings_until_it_fails < 0 || readings_until_it_fails-- > 0) return real(directory);
  errno = EIO;
  return nullptr;
}

namespace rtmeter {
namespace {

using namespace testing_help;
namespace fs = std::filesystem;

constexpr std::int64_t kHourNs = 3'600'000'000'000;

// What earlier starts kept whole goes once it is older than that; all else of theirs stays, and so does what
// is this start's own, or no loop's.
TEST(EarlierStarts, LoseWhatTheyKeptWholeForTooLong) {
  const TemporaryDirectory directory;
  const auto put = [&](const std::string& path, int hours) {
    fs::create_directories(fs::path(directory / path).parent_path());
    std::ofstream(directory / path) << "rows";
    fs::last_write_time(directory / path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  const std::vector<std::string> kept = {"1.loop/late-0.rtlog",    "1.loop/blocks-0.rtlog",
                                         "1.loop/bins.json",       "2.loop/whole-5.rtlog",
                                         "own.loop/whole-0.rtlog", "other/whole-0.rtlog"};
  const std::vector<std::string> gone = {"1.loop/whole-0.rtlog", "2.loop/whole-0.rtlog"};
  for (const std::string& path : kept) put(path, path == "2.loop/whole-5.rtlog" ? 1 : 3);
  for (const std::string& path : gone) put(path, 3);
  drop_whole_logs_of_earlier_starts(directory / "own.loop", 2 * kHourNs);
  for (const std::string& path : kept) EXPECT_TRUE(fs::exists(directory / path)) << path;
  for (const std::string& path : gone) EXPECT_FALSE(fs::exists(directory / path)) << path;
}

TEST(EarlierStarts, ThatCannotBeReadCostNoRow) {
  const TemporaryDirectory directory;
  const std::int64_t period = 1'000'000, last = kHourNs / period / Keeper::kSegments;
  Keeper keeper({directory / "", period, period / 2, 0, kHourNs, 1 << 28,
                 loop_header("arm", period, period / 2, 0, 0)});
  for (std::int64_t k = 0; k <= last; ++k) {
    if (k == last) readings_until_it_fails = 1;  // a segment ends
    const std::int64_t row[JobRow::kColumns] = {k, k * period, k * period + 10, k * period + 20, kServed};
    EXPECT_NO_THROW(keeper.append(row, 1));
  }
  if (readings_until_it_fails == 1) GTEST_SKIP() << "directories are read by another function here";
  EXPECT_EQ(readings_until_it_fails, -1);
  keeper.finish(Json::object());
  EXPECT_EQ(bins_of(directory / "").find("served")->as_int(), last + 1);
  EXPECT_EQ(bins_of(directory / "").find("skipped")->as_int(), 0);
}

}  // namespace
}  // namespace rtmeter
