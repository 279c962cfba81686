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

#include "errors.hpp"
#include "sample_log_file.hpp"

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

}  // namespace
}  // namespace rtmeter
