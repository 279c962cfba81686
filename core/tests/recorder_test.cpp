#include "log/recorder.hpp"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "errors.hpp"
#include "log/hold.hpp"
#include "log/log_writer.hpp"
#include "sample_log_file.hpp"

namespace rtmeter {
namespace {

using testing_help::read_sample_log;
using testing_help::Row;
using testing_help::rows_of;

class RecorderTest : public testing::Test {
 protected:
  static void record(Recorder& recorder, std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      const std::int64_t row[] = {i, -i, kServed};
      recorder.record(row);
    }
  }

  static std::vector<Row> expected_rows(std::int64_t end) {
    std::vector<Row> rows;
    for (std::int64_t i = 0; i < end; ++i) rows.push_back({i, -i, kServed});
    return rows;
  }

  std::vector<Row> rows_in_log() const { return rows_of(read_sample_log(path_), kColumns); }

  // Waits for what must come, however slow the machine; false after a minute.
  template <typename Condition>
  static bool comes_true(Condition condition, int centiseconds = 6000) {
    for (int i = 0; i < centiseconds && !condition(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return condition();
  }

  static constexpr std::size_t kColumns = 3;
  const testing_help::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "test.rtlog";
  LogWriter log_{path_, testing_help::header_of_columns({"a", "b", "status"})};
};

TEST_F(RecorderTest, KeepsTheOrderWhileTheRingWrapsAroundManyTimes) {
  constexpr std::int64_t kRows = 300'000;
  Recorder recorder(log_, kColumns, 200, WhenFull::wait, nullptr);
  EXPECT_EQ(recorder.ring_rows(), 256u);
  recorder.start({});
  record(recorder, 0, kRows);
  recorder.finish();
  EXPECT_EQ(recorder.recorded(), static_cast<std::uint64_t>(kRows));
  EXPECT_EQ(recorder.overflow(), 0u);
  EXPECT_LE(recorder.high_water(), 256u);
  EXPECT_FALSE(recorder.failed());
  EXPECT_EQ(rows_in_log(), expected_rows(kRows));
}

TEST_F(RecorderTest, CountsEveryRowThatAFullRingLoses) {
  Recorder recorder(log_, kColumns, 8, WhenFull::count, nullptr);
  record(recorder, 0, 20);  // nobody drains yet
  EXPECT_EQ(recorder.recorded(), 8u);
  EXPECT_EQ(recorder.overflow(), 12u);
  recorder.start({});
  recorder.finish();
  EXPECT_EQ(recorder.high_water(), 8u);
  EXPECT_EQ(rows_in_log(), expected_rows(8));
}

TEST_F(RecorderTest, GoesOnAfterAnOverflow) {
  std::atomic<bool> held{true};
  Recorder recorder(log_, kColumns, 8, WhenFull::count, [&](const std::int64_t*, std::size_t) {
    while (held) std::this_thread::yield();
  });
  recorder.start({});
  record(recorder, 0, 20);
  EXPECT_EQ(recorder.recorded() + recorder.overflow(), 20u);
  EXPECT_GE(recorder.overflow(), 4u);  // at most one ring was taken over before the tap held the writer
  held = false;
  ASSERT_TRUE(comes_true([&] { return log_.rows() == recorder.recorded(); }));
  const std::uint64_t overflow = recorder.overflow();
  record(recorder, 100, 104);
  recorder.finish();
  EXPECT_EQ(recorder.overflow(), overflow);
  const std::vector<Row> rows = rows_in_log();
  EXPECT_EQ(rows.size(), recorder.recorded());
  EXPECT_EQ(rows.back(), (Row{103, -103, kServed}));
}

TEST_F(RecorderTest, DoesNotCountWhatComesAfterTheEnd) {
  Recorder recorder(log_, kColumns, 256, WhenFull::count, nullptr);
  recorder.start({});
  record(recorder, 0, 10);
  recorder.finish();
  record(recorder, 10, 15);  // a server whose client still sends
  EXPECT_EQ(recorder.recorded(), 10u);
  EXPECT_EQ(log_.rows(), recorder.recorded());
  EXPECT_EQ(rows_in_log(), expected_rows(10));
}

TEST_F(RecorderTest, DoesNotWaitForAWriterThatIsNotThere) {
  Recorder recorder(log_, kColumns, 8, WhenFull::wait, nullptr);
  record(recorder, 0, 9);
  EXPECT_EQ(recorder.overflow(), 1u);
  recorder.start({});
  recorder.finish();
  record(recorder, 0, 9);
  EXPECT_EQ(recorder.overflow(), 2u);
}

TEST_F(RecorderTest, TellsHowFullTheRingHasBeen) {
  Recorder recorder(log_, kColumns, 1024, WhenFull::count, nullptr);
  record(recorder, 0, 100);
  recorder.start({});
  ASSERT_TRUE(comes_true([&] { return recorder.high_water() > 0; }));  // told after the rows are in the log
  record(recorder, 100, 130);
  recorder.finish();
  EXPECT_EQ(recorder.high_water(), 100u);
}

TEST_F(RecorderTest, WritesRowsIntoAFrameWithoutBeingAsked) {
  Recorder recorder(log_, kColumns, 1024, WhenFull::count, nullptr);
  recorder.start({});
  record(recorder, 0, 10);
  EXPECT_TRUE(comes_true([&] { return log_.rows() == 10 && log_.held_back() == 0; }, 1500));
  EXPECT_EQ(rows_in_log(), expected_rows(10));
  record(recorder, 10, 15);
  EXPECT_TRUE(comes_true([&] { return log_.rows() == 15 && log_.held_back() == 0; }));
  const std::string kinds = read_sample_log(path_).kinds();  // more frames where this thread stood still
  EXPECT_EQ(kinds.substr(0, 4), "HHRR");
  EXPECT_EQ(kinds.find_first_not_of('R', 2), std::string::npos);
}

// Fewer, in all the time that this waits, than the 8,192 that fill a frame.
TEST_F(RecorderTest, WritesAFrameWhileRowsKeepComing) {
  Recorder recorder(log_, kColumns, 1024, WhenFull::count, nullptr);
  recorder.start({});
  std::int64_t k = 0;
  EXPECT_TRUE(comes_true([&] {
    record(recorder, k, k + 1);
    ++k;
    return log_.held_back() < log_.rows();
  }));
}

TEST(Hold, LastsFourTenthsOfASecondFromTheOldestRow) {
  constexpr std::int64_t kBegin = 5'000'000'000;
  Hold hold;
  EXPECT_FALSE(hold.due(INT64_MAX));
  hold.begin(kBegin);
  hold.begin(kBegin + 300'000'000);  // a later row
  EXPECT_FALSE(hold.due(kBegin + 399'999'999));
  EXPECT_TRUE(hold.due(kBegin + 400'000'000));
  hold.end();
  EXPECT_FALSE(hold.due(INT64_MAX));
  hold.begin(kBegin + 1'000'000'000);
  EXPECT_FALSE(hold.due(kBegin + 1'399'999'999));
  EXPECT_TRUE(hold.due(kBegin + 1'400'000'000));
}

TEST(RingRows, HoldTwoSecondsWithinBounds) {
  EXPECT_EQ(ring_rows_for(1'000'000, 4), 32'768u);  // 2,000 rows would do
  EXPECT_EQ(ring_rows_for(50'000, 4), 65'536u);  // 40,001
  EXPECT_EQ(ring_rows_for(10'000, 4), 262'144u);  // 200,001
  EXPECT_EQ(ring_rows_for(1, 4), (64u << 20) / 32);  // 64 MiB
  EXPECT_EQ(ring_rows_for(1, 5), (64u << 20) / 64);  // the power of two below 64 MiB
  EXPECT_EQ(ring_rows_for(1, 8), (64u << 20) / 64);
  EXPECT_EQ(ring_rows_for(3'600'000'000'000, 8), 32'768u);
  EXPECT_EQ(ring_rows_for(61'036, 4), 32'768u);  // 32,768
  EXPECT_EQ(ring_rows_for(61'035, 4), 65'536u);  // 32,769
}

TEST(RingRows, HoldNoLongerThanTimeLasts) {
  EXPECT_EQ(holds_ns(32'768, 1'000'000), 32'768'000'000);
  EXPECT_EQ(holds_ns(32'768, 366LL * 86'400 * 1'000'000'000), INT64_MAX);
  EXPECT_EQ(holds_ns(32'768, INT64_MAX / 32'768), INT64_MAX / 32'768 * 32'768);
}

TEST_F(RecorderTest, ShowsTheTapEveryRowInOrder) {
  std::vector<std::int64_t> seen;
  Recorder recorder(log_, kColumns, 64, WhenFull::wait, [&](const std::int64_t* rows, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) seen.push_back(rows[i * kColumns]);
  });
  recorder.start({});
  record(recorder, 0, 10'000);
  recorder.finish();
  ASSERT_EQ(seen.size(), 10'000u);
  for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], static_cast<std::int64_t>(i));
}

TEST_F(RecorderTest, SurvivesAFullDiskAndSaysSo) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{static_cast<rlim_t>(log_.bytes() + 5000), before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  Recorder recorder(log_, kColumns, 256, WhenFull::wait, nullptr);
  recorder.start({});
  std::int64_t i = 0;
  for (; i < 10'000'000 && !recorder.failed(); ++i) {
    const std::int64_t row[] = {i * i * i, i * i, kServed};
    recorder.record(row);
  }
  record(recorder, i, i + 1000);  // a ring that nobody drained would hang here
  recorder.finish();
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(recorder.failed());
  EXPECT_EQ(recorder.failure(), "cannot write the sample log: File too large");
  EXPECT_EQ(recorder.recorded(), static_cast<std::uint64_t>(i + 1000));
  EXPECT_EQ(log_.rows(), recorder.recorded());
  const auto written = read_sample_log(path_);
  EXPECT_EQ(written.whole_bytes, written.file_bytes);
}

TEST_F(RecorderTest, ReportsATapThatThrows) {
  Recorder recorder(log_, kColumns, 64, WhenFull::wait,
                    [](const std::int64_t*, std::size_t) { throw std::runtime_error("the tap broke"); });
  recorder.start({});
  record(recorder, 0, 1000);
  recorder.finish();
  EXPECT_TRUE(recorder.failed());
  EXPECT_EQ(recorder.failure(), "the tap broke");
}

std::string status_line(int tid, const std::string& key) {
  std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + ":")) return line.substr(line.find_first_not_of(" \t", key.size() + 1));
  }
  return "";
}

TEST_F(RecorderTest, RunsItsWriterAsANormalThreadThatTakesNoSignals) {
  Recorder recorder(log_, kColumns, 64, WhenFull::count, nullptr);
  EXPECT_EQ(recorder.writer_tid(), 0);
  recorder.start({});
  const int tid = recorder.writer_tid();
  ASSERT_GT(tid, 0);
  EXPECT_EQ(status_line(tid, "Name"), "rtm-writer");
  EXPECT_EQ(sched_getscheduler(tid), SCHED_OTHER);
  const std::uint64_t blocked = std::stoull(status_line(tid, "SigBlk"), nullptr, 16);
  for (const int signal : {SIGINT, SIGTERM, SIGXFSZ, SIGUSR1, SIGCHLD}) {
    EXPECT_TRUE(blocked >> (signal - 1) & 1) << signal;
  }
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_FALSE(sigismember(&own, SIGTERM));  // the starter's own mask is as before
  // With nothing to write it sleeps: one that looked again and again would always run.
  EXPECT_TRUE(comes_true([&] { return status_line(tid, "State").substr(0, 1) == "S"; }));
  recorder.finish();
  EXPECT_EQ(recorder.writer_tid(), tid);  // for a moment /proc still lists it, as a thread of ours
  // A joined thread may stay in /proc for a moment.
  EXPECT_TRUE(comes_true([&] { return status_line(tid, "Name").empty(); }));
}

TEST_F(RecorderTest, StaysOffTheMeasuredCpuIfThereIsAnother) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  }
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU only";
  Recorder recorder(log_, kColumns, 64, WhenFull::count, nullptr);
  recorder.start({cpus[0]});
  cpu_set_t got;
  ASSERT_EQ(sched_getaffinity(recorder.writer_tid(), sizeof got, &got), 0);
  EXPECT_FALSE(CPU_ISSET(cpus[0], &got));
  EXPECT_TRUE(CPU_ISSET(cpus[1], &got));
}

TEST_F(RecorderTest, TakesEveryCpuIfNoneIsLeft) {
  std::vector<int> all;
  for (int cpu = -1; cpu < CPU_SETSIZE + 1; ++cpu) all.push_back(cpu);
  Recorder recorder(log_, kColumns, 64, WhenFull::count, nullptr);
  recorder.start(all);
  record(recorder, 0, 5);
  recorder.finish();
  EXPECT_EQ(rows_in_log(), expected_rows(5));
}

TEST_F(RecorderTest, IsNormalEvenWhenARealTimeThreadStartsIt) {
  const sched_param priority{.sched_priority = 10};
  int policy = -1;
  bool permitted = false;
  std::thread([&] {
    permitted = pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) == 0;
    if (!permitted) return;
    Recorder recorder(log_, kColumns, 64, WhenFull::count, nullptr);
    recorder.start({});
    policy = sched_getscheduler(recorder.writer_tid());
  }).join();
  if (!permitted) GTEST_SKIP() << "no permission for SCHED_FIFO";
  EXPECT_EQ(policy, SCHED_OTHER);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// In strict seccomp mode any system call but read, write and exit kills the process.
TEST_F(RecorderTest, RecordsWithoutAnySystemCall) {
  constexpr int kNoSeccomp = 77;
  Recorder recorder(log_, kColumns, 64, WhenFull::count, nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(kNoSeccomp);
    record(recorder, 0, 1000);  // fills the ring, and overflows it
    syscall(SYS_exit, recorder.recorded() == 64 && recorder.overflow() == 936 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSeccomp) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace rtmeter
