#include "log/log_writer.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "emulated.hpp"
#include "errors.hpp"
#include "sample_log_file.hpp"
#include "sanitized.hpp"

namespace rtmeter {
namespace {

using testing_help::header_of_columns;
using testing_help::read_sample_log;
using testing_help::Row;
using testing_help::rows_of;
using testing_help::SampleLog;

constexpr std::size_t kFullFrame = 8192;

class LogWriterTest : public testing::Test {
 protected:
  // Appends `count` rows of two columns that tell their index.
  static void append_rows(LogWriter& log, std::size_t count) {
    std::vector<std::int64_t> rows;
    for (std::size_t i = 0; i < count; ++i) {
      rows.push_back(static_cast<std::int64_t>(log.rows() + i));
      rows.push_back(-1);
    }
    log.append(rows.data(), count);
  }

  const testing_help::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "test.rtlog";
  const Json header_ = header_of_columns({"release_ns", "status"});
};

// Bounds the size of files that this process writes, so that a disk seems full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

std::string message_of(const std::function<void()>& step) {
  try {
    step();
  } catch (const Failure& failure) {
    return failure.field() + " " + failure.value() + ": " + failure.what();
  }
  return "no failure";
}

TEST_F(LogWriterTest, LaysOutMagicHeadersAndFramesAsSpecified) {
  LogWriter log(path_, header_);
  EXPECT_EQ(log.bytes(), 12 + 2 * (32 + header_.dump().size()));
  const std::int64_t rows[] = {5, 1, 7, -1};
  log.append(rows, 2);
  log.finish(Json::object());
  const std::string file = testing_help::file_content(path_);
  EXPECT_EQ(file.size(), log.bytes());
  EXPECT_EQ(file.substr(12, 8), std::string("RBF\x01H\0\0\0", 8));
  const SampleLog written = read_sample_log(path_);
  EXPECT_EQ(written.head, std::string("\x89RTM\r\n\x1a\n\x01\0\0\0", 12));
  ASSERT_EQ(written.kinds(), "HHRE");
  EXPECT_EQ(written.whole_bytes, written.file_bytes);
  EXPECT_EQ(written.frames[0].content, header_.dump());
  EXPECT_EQ(written.frames[1].content, header_.dump());
  EXPECT_EQ(written.frames[2].row_count, 2u);
  // Deltas 5, 2 → codes 10, 4; deltas 1, -2 → codes 2, 3. Lowest bytes first, then seven planes of zeros.
  EXPECT_EQ(written.frames[2].content, std::string("\x0a\x04", 2) + std::string(14, '\0') +
                                           std::string("\x02\x03", 2) + std::string(14, '\0'));
  EXPECT_EQ(written.frames[3].first_row, 2u);
  EXPECT_EQ(written.frames[3].content, "{}");
}

TEST_F(LogWriterTest, KeepsEveryValueEvenWhereDeltasWrap) {
  const std::size_t columns = 3;
  LogWriter log(path_, header_of_columns({"a", "b", "status"}));
  std::mt19937_64 random(7);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < 3 * kFullFrame + 11; ++i) {
    const std::int64_t extremes[] = {INT64_MIN, INT64_MAX, 0, -1, static_cast<std::int64_t>(random())};
    rows.push_back({extremes[random() % 5], extremes[random() % 5], static_cast<std::int64_t>(random())});
    log.append(rows.back().data(), 1);
    if (random() % 5000 == 0) log.flush();
  }
  log.finish(Json::object());
  EXPECT_EQ(rows_of(read_sample_log(path_), columns), rows);
}

TEST_F(LogWriterTest, WritesAFrameWhenItIsFullAndHoldsTheRestBack) {
  LogWriter log(path_, header_);
  append_rows(log, 2 * kFullFrame + 5);
  EXPECT_EQ(log.rows(), 2 * kFullFrame + 5);
  EXPECT_EQ(log.held_back(), 5u);
  EXPECT_EQ(read_sample_log(path_).kinds(), "HHRR");
  log.flush();
  EXPECT_EQ(log.held_back(), 0u);
  log.flush();
  EXPECT_EQ(read_sample_log(path_).kinds(), "HHRRR");
}

TEST_F(LogWriterTest, WritesRowsBeforeTheUpdateThatFollowsThem) {
  LogWriter log(path_, header_);
  append_rows(log, 3);
  Json update = Json::object();
  update["counters"] = 1;
  log.update(update);
  append_rows(log, 2);
  log.finish(Json::object());
  const SampleLog written = read_sample_log(path_);
  ASSERT_EQ(written.kinds(), "HHRJRE");
  EXPECT_EQ(written.frames[3].first_row, 3u);
  EXPECT_EQ(written.frames[3].content, R"({"counters":1})");
  EXPECT_EQ(rows_of(written, 2).size(), 5u);
  EXPECT_EQ(written.frames[5].first_row, 5u);
}

TEST_F(LogWriterTest, WithoutFinishThereIsNoEndFrame) {
  {
    LogWriter log(path_, header_);
    append_rows(log, 3);
    log.flush();
  }
  EXPECT_EQ(read_sample_log(path_).kinds(), "HHR");
}

TEST_F(LogWriterTest, RefusesAFileThatExistsAndLeavesItAlone) {
  std::ofstream(path_) << "precious";
  EXPECT_EQ(message_of([&] { LogWriter(path_, header_); }),
            "log " + path_ + ": cannot create the sample log: File exists");
  EXPECT_EQ(testing_help::file_content(path_), "precious");
}

TEST_F(LogWriterTest, NamesThePathThatCannotBeMade) {
  const std::string nowhere = directory_ / "no/such/directory.rtlog";
  EXPECT_EQ(message_of([&] { LogWriter(nowhere, header_); }),
            "log " + nowhere + ": cannot create the sample log: No such file or directory");
}

TEST_F(LogWriterTest, RefusesAHeaderWithoutColumnsOrWithTooMany) {
  EXPECT_NE(message_of([&] { LogWriter(path_, Json::object()); }).find("not 0"), std::string::npos);
  EXPECT_NE(message_of([&] {
              LogWriter(path_, header_of_columns(std::vector<std::string>(65, "x")));
            }).find("not 65"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(LogWriterTest, CutsBackToTheLastWholeFrameWhenTheDiskIsFull) {
  LogWriter log(path_, header_);
  append_rows(log, 100);
  log.flush();
  const std::uint64_t whole = log.bytes();
  {
    const FileSizeLimit limit(whole + 40);
    append_rows(log, 50);
    EXPECT_EQ(message_of([&] { log.flush(); }),
              "log " + path_ + ": cannot write the sample log: File too large");
    EXPECT_EQ(std::filesystem::file_size(path_), whole);
    EXPECT_EQ(message_of([&] { append_rows(log, 7); }),
              "log " + path_ + ": cannot write the sample log: File too large");
    EXPECT_NE(message_of([&] { log.update(Json::object()); }), "no failure");
    EXPECT_NE(message_of([&] { log.finish(header_); }), "no failure");
    EXPECT_EQ(std::filesystem::file_size(path_), whole);
  }
  EXPECT_EQ(log.rows(), 157u);
  EXPECT_EQ(log.held_back(), 0u);
  EXPECT_EQ(read_sample_log(path_).kinds(), "HHR");
}

TEST_F(LogWriterTest, TellsHowManyRowsWereLostIfTheEndFrameFits) {
  LogWriter log(path_, header_);
  append_rows(log, 100);
  {
    const FileSizeLimit limit(log.bytes() + 40);
    EXPECT_NE(message_of([&] { log.flush(); }), "no failure");
  }
  EXPECT_NE(message_of([&] { append_rows(log, 20); }), "no failure");
  log.finish(Json::object());
  const SampleLog written = read_sample_log(path_);
  ASSERT_EQ(written.kinds(), "HHE");
  EXPECT_EQ(written.frames[2].first_row, 120u);
  EXPECT_EQ(written.whole_bytes, written.file_bytes);
}

TEST_F(LogWriterTest, LeavesNoFileBehindIfNotEvenTheHeaderFits) {
  for (const rlim_t bytes : {0, 40}) {
    const FileSizeLimit limit(bytes);
    EXPECT_NE(message_of([&] { LogWriter(path_, header_); }), "no failure");
    EXPECT_FALSE(std::filesystem::exists(path_)) << bytes;
  }
}

TEST_F(LogWriterTest, TakesNoFurtherMemoryHoweverManyRowsItWrites) {
  LogWriter log(path_, header_);
  append_rows(log, 10 * kFullFrame);
  const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  for (int i = 0; i < 300; ++i) append_rows(log, kFullFrame);
  EXPECT_EQ(mallinfo2().uordblks + mallinfo2().hblkhd, before);
}

TEST_F(LogWriterTest, TakesUpdatesFromAnotherThread) {
  LogWriter log(path_, header_);
  std::thread updater([&] {
    for (int i = 0; i < 50; ++i) log.update(Json::object());
  });
  for (int i = 0; i < 200; ++i) append_rows(log, 100);
  updater.join();
  log.finish(Json::object());
  const SampleLog written = read_sample_log(path_);
  EXPECT_EQ(rows_of(written, 2).size(), 20'000u);
  const std::string kinds = written.kinds();
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), 'J'), 50);
}

// What the process holds of its own memory, as the kernel counts it page by page; -1 if it does not.
std::int64_t anonymous_kib() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);)
    if (line.rfind("Anonymous:", 0) == 0) return std::stoll(line.substr(line.find(':') + 1));
  return -1;
}

// Whatever is compressed later: a probe's memory stays as it was when the run began.
TEST_F(LogWriterTest, AllMemoryIsTakenAndTouchedBeforeTheFirstRow) {
  SKIP_UNDER_EMULATION();
  SKIP_UNDER_SANITIZERS();
  constexpr std::size_t kColumns = 5;
  std::mt19937_64 random{1};
  std::vector<std::vector<std::int64_t>> kinds(4, std::vector<std::int64_t>(kFullFrame * kColumns));
  for (std::size_t i = 0; i < kinds[0].size(); ++i) {
    const auto row = static_cast<std::int64_t>(i / kColumns);
    const auto noise = static_cast<std::int64_t>(random() % 20'000);
    kinds[0][i] = i % kColumns == 4 ? 1 : row * 1'000'000 + noise;       // as measured
    kinds[1][i] = static_cast<std::int64_t>(random());                   // nothing repeats
    kinds[2][i] = static_cast<std::int64_t>(random() % 2);               // short matches
    kinds[3][i] = static_cast<std::int64_t>((row / 3) * (row % 17)) << 32;  // longer ones
  }
  LogWriter log(path_, header_of_columns({"a", "b", "c", "d", "status"}));
  log.append(kinds[0].data(), 1);
  log.flush();
  anonymous_kib();  // takes memory itself
  const std::int64_t before_kib = anonymous_kib();
  if (before_kib < 0) GTEST_SKIP() << "needs /proc/self/smaps_rollup";
  for (int round = 0; round < 3; ++round)
    for (const auto& rows : kinds)
      for (const std::size_t count : {std::size_t{40}, std::size_t{450}, std::size_t{3000}, kFullFrame}) {
        log.append(rows.data(), count);
        log.flush();
      }
  EXPECT_EQ(anonymous_kib() - before_kib, 0);
}

}  // namespace
}  // namespace rtmeter
