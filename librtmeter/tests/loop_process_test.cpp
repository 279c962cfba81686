// Loops in real processes, by the C ABI: forks, kills, and the CPU of the writer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "child.hpp"
#include "emulated.hpp"
#include "loop_folder.hpp"
#include "rtmeter/loop.h"
#include "rtmeter/loop.hpp"
#include "system/affinity.hpp"
#include "system/audit.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

constexpr std::int64_t kT = 1'000'000;

class LoopProcess : public testing::Test {
 protected:
  LoopProcess() {
    folder_ = directory_ / "loops";
    options_.folder = folder_.c_str();
    options_.warm_up_ns = 1;
  }
  rtm_loop* open(const char* name = "arm") {
    rtm_loop* loop = rtm_loop_open(name, kT, &options_, error_, sizeof error_);
    EXPECT_NE(loop, nullptr) << error_;
    return loop;
  }
  static void run(rtm_loop* loop, int jobs) {
    for (int i = 0; i < jobs; ++i) {
      EXPECT_GT(rtm_loop_sleep(loop), 0);
      rtm_loop_done(loop);
    }
  }
  std::string only_start(const char* name = "arm") {
    const auto starts = files_of(folder_ + "/" + name, "2");
    EXPECT_EQ(starts.size(), 1u);
    return starts.front();
  }

  TemporaryDirectory directory_;
  std::string folder_;
  rtm_loop_options options_ = RTM_LOOP_OPTIONS;
  char error_[300] = "";
};

void expect_served_and_skipped(const std::vector<Row>& rows, std::size_t jobs) {
  std::size_t served = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i][0], static_cast<std::int64_t>(i));
    const bool skipped = (rows[i][5] & 15) == 2;
    served += skipped ? 0 : 1;
    if (skipped) continue;
    EXPECT_LE(rows[i][1], rows[i][2]) << "it does not wake before its release";
    EXPECT_LE(rows[i][2], rows[i][3]);
  }
  EXPECT_EQ(served, jobs);
}

TEST_F(LoopProcess, SleepsOnTheGridAndRecordsEachRelease) {
  rtm_loop* loop = open();
  run(loop, 50);
  EXPECT_EQ(rtm_loop_close(loop, error_, sizeof error_), 0) << error_;
  expect_served_and_skipped(rows_of_part(only_start(), "whole"), 50);
}

// A daemon may have closed them, and prints all the same.
TEST_F(LoopProcess, TakesNoDescriptorOfStandardInputAndOutput) {
  EXPECT_EQ(in_child([&] {
              for (const int fd : {0, 1, 2}) close(fd);
              rtm_loop* loop = open();
              run(loop, 3);
              std::string taken;
              for (const int fd : {0, 1, 2})
                if (fcntl(fd, F_GETFD) != -1) taken += std::to_string(fd) + " ";
              return taken + (rtm_loop_close(loop, error_, sizeof error_) == 0 ? "closed" : error_);
            }),
            "closed");
  expect_served_and_skipped(rows_of_part(only_start(), "whole"), 3);
}

TEST_F(LoopProcess, CatchesUpIfAskedTo) {
  options_.flags = RTM_LOOP_CATCH_UP;
  rtm_loop* loop = open();
  const std::int64_t first = rtm_loop_sleep(loop);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  rtm_loop_done(loop);
  for (int k = 1; k < 20; ++k) {
    EXPECT_EQ(rtm_loop_sleep(loop), first + k * kT);
    rtm_loop_done(loop);
  }
  rtm_loop_close(loop, nullptr, 0);
  expect_served_and_skipped(rows_of_part(only_start(), "whole"), 20);
}

TEST_F(LoopProcess, WithoutALoopNothingHappens) {
  EXPECT_EQ(rtm_loop_open("a b", kT, &options_, error_, sizeof error_), nullptr);
  EXPECT_STREQ(error_,
               "name a b: is no name of a loop; give 1 to 64 letters, digits, '.', '_' or '-', not "
               "beginning with '.'");
  rtm_loop_wake(nullptr, RTM_LOOP_DUE_UNKNOWN);
  rtm_loop_done(nullptr);
  EXPECT_EQ(rtm_loop_sleep(nullptr), -1);
  EXPECT_EQ(rtm_loop_close(nullptr, nullptr, 0), 0);
}

TEST_F(LoopProcess, ATextThatTheLibraryWouldCutIsRefused) {
  using namespace std::string_literals;
  const auto open = [](const std::string& name, const std::string& folder) {
    OwnLoopOptions options;
    options.folder = folder;
    OwnLoop(name, std::chrono::milliseconds(1), options);
  };
  EXPECT_THROW(open("arm\0leg"s, folder_), std::runtime_error);
  EXPECT_THROW(open("arm", folder_ + "\0leg"s), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(folder_));
  EXPECT_NO_THROW(open("arm", folder_));
}

TEST_F(LoopProcess, APeriodHasNoDefault) {
  EXPECT_EQ(rtm_loop_open("arm", 0, &options_, error_, sizeof error_), nullptr);
  EXPECT_STREQ(error_, "period_ns 0: is no duration or size that a loop can have; give 1000 to 2^56");
}

// An empty start would be one whose program was killed.
TEST_F(LoopProcess, AnOpenThatFailsLeavesNoStart) {
  options_.whole_ns = 1;
  EXPECT_EQ(rtm_loop_open("arm", kT, &options_, error_, sizeof error_), nullptr);
  EXPECT_NE(std::string(error_).find("whole_ns 1: "), std::string::npos) << error_;
  EXPECT_TRUE(files_of(folder_ + "/arm", "2").empty());
}

int wait_for(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

// A child has no writer: what it stamps goes nowhere, it may not take the name, and the parent goes on.
TEST_F(LoopProcess, AForkLeavesTheLoopToTheParent) {
  rtm_loop* loop = open();
  run(loop, 10);
  const pid_t child = fork();
  if (child == 0) {
    rtm_loop_wake(loop, RTM_LOOP_DUE_UNKNOWN);
    rtm_loop_done(loop);
    const bool refused = rtm_loop_open("arm", kT, &options_, error_, sizeof error_) == nullptr;
    const bool closed = rtm_loop_close(loop, error_, sizeof error_) == 0;
    std::exit(refused && closed ? 7 : 1);
  }
  EXPECT_EQ(WEXITSTATUS(wait_for(child)), 7);
  run(loop, 10);
  EXPECT_EQ(rtm_loop_close(loop, error_, sizeof error_), 0) << error_;
  expect_served_and_skipped(rows_of_part(only_start(), "whole"), 20);
}

// Its releases go on even so: a control loop that never slept would keep its CPU for itself.
TEST_F(LoopProcess, AForkSleepsOnItsGrid) {
  options_.flags = RTM_LOOP_CATCH_UP;
  rtm_loop* loop = open();
  run(loop, 3);
  const pid_t child = fork();
  if (child == 0) {
    std::int64_t before = rtm_loop_sleep(loop);
    for (int i = 0; i < 10; ++i) {
      const std::int64_t release = rtm_loop_sleep(loop);
      if (release <= before) std::_Exit(1);
      before = release;
    }
    std::_Exit(7);
  }
  EXPECT_EQ(WEXITSTATUS(wait_for(child)), 7);
  rtm_loop_close(loop, nullptr, 0);
}

// A folder is found where it was, wherever the program goes.
TEST_F(LoopProcess, AProgramThatChangesItsDirectoryKeepsItsFolder) {
  const std::string there = directory_ / "";
  const pid_t child = fork();
  if (child == 0) {
    if (chdir(there.c_str()) != 0) std::_Exit(1);
    options_.folder = "loops";
    rtm_loop* loop = open();
    if (chdir("/") != 0) std::_Exit(1);
    run(loop, 3);
    const bool closed = rtm_loop_close(loop, error_, sizeof error_) == 0;
    std::_Exit(closed ? 7 : 1);
  }
  EXPECT_EQ(WEXITSTATUS(wait_for(child)), 7);
  expect_served_and_skipped(rows_of_part(only_start(), "whole"), 3);
  EXPECT_EQ(bins_of(only_start()).find("served")->as_int(), 2) << "the first is the warm-up's";
}

TEST_F(LoopProcess, AnExitWithoutCloseWritesWhatWasStamped) {
  const pid_t child = fork();
  if (child == 0) {
    rtm_loop* loop = open();
    run(loop, 20);
    std::exit(0);
  }
  EXPECT_EQ(WEXITSTATUS(wait_for(child)), 0);
  const std::string log = files_of(only_start(), "whole-").front();
  expect_served_and_skipped(rows_with_k(log, 5), 20);
  EXPECT_EQ(read_sample_log(log).frames.back().kind, 'E');
}

void wait_until(std::int64_t at_ns) {
  while (std::chrono::steady_clock::now().time_since_epoch() < std::chrono::nanoseconds(at_ns)) {
  }
}

// A watchdog that ends a program that hangs hides nothing.
TEST_F(LoopProcess, AnExitWithinAJobThatIsLateLosesIt) {
  const pid_t child = fork();
  if (child == 0) {
    rtm_loop* loop = open();
    run(loop, 20);
    wait_until(rtm_loop_sleep(loop) + 3 * kT + 1);
    std::exit(0);
  }
  EXPECT_EQ(WEXITSTATUS(wait_for(child)), 0);
  auto rows = rows_of_part(only_start(), "whole");
  const Json bins = bins_of(only_start());
  EXPECT_EQ(bins.find("lost")->as_int(), 1);
  std::size_t after = 0;
  for (; !rows.empty() && rows.back()[5] == 2; rows.pop_back()) ++after;
  EXPECT_GE(after, 3u) << "these passed meanwhile";
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.back()[5], 3);
  rows.pop_back();
  expect_served_and_skipped(rows, 20);
}

// Of a child that is forked while another thread opens a loop, too, the name is free once that is closed.
TEST_F(LoopProcess, AChildOfAnyMomentLeavesTheNameFree) {
  std::atomic<bool> done{false};
  std::vector<pid_t> children;
  std::thread forks([&] {
    while (!done.load() && children.size() < 300) {
      const pid_t child = fork();
      if (child == 0)
        for (;;) pause();
      children.push_back(child);
    }
    done.store(true);
  });
  for (int times = 0; !done.load() && !HasFailure(); ++times)
    EXPECT_EQ(rtm_loop_close(open(), nullptr, 0), 0);
  done.store(true);
  forks.join();
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

// What a program has at namespace scope goes at its end after all that the library made since.
struct LastOfAll {
  ~LastOfAll() {
    if (loop == nullptr) return;
    const pid_t child = fork();  // which walks the list of open loops
    if (child == 0) std::_Exit(7);
    int status = 0;
    waitpid(child, &status, 0);
    const bool closed = rtm_loop_close(loop, nullptr, 0) == 0;
    std::_Exit(!closed ? 8 : WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  rtm_loop* loop = nullptr;
} last_of_all;

TEST_F(LoopProcess, ALoopAtNamespaceScopeIsOpenUntilItsEnd) {
  const pid_t child = fork();
  if (child == 0) {
    last_of_all.loop = open();
    run(last_of_all.loop, 20);
    std::exit(1);
  }
  const int status = wait_for(child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  expect_served_and_skipped(rows_of_part(only_start(), "whole"), 20);
}

// What could not be written when exit() ended it, its close is told.
TEST_F(LoopProcess, AFullDiskIsToldToWhoClosesAfterTheEnd) {
  const pid_t child = fork();
  if (child == 0) {
    last_of_all.loop = open();
    std::filesystem::create_directory(only_start() + "/bins.json.new");
    run(last_of_all.loop, 3);
    std::exit(1);
  }
  EXPECT_EQ(WEXITSTATUS(wait_for(child)), 8);
}

// Of the parent's job a child hands over nothing, however late it ends.
TEST_F(LoopProcess, AForkWithinAJobLeavesItToTheParent) {
  rtm_loop* loop = open();
  run(loop, 10);
  const std::int64_t release = rtm_loop_sleep(loop);
  const pid_t child = fork();
  if (child == 0) {
    wait_until(release + 3 * kT + 1);
    std::exit(7);
  }
  EXPECT_EQ(WEXITSTATUS(wait_for(child)), 7);
  rtm_loop_done(loop);
  EXPECT_EQ(rtm_loop_close(loop, error_, sizeof error_), 0) << error_;
  expect_served_and_skipped(rows_of_part(only_start(), "whole"), 11);
  EXPECT_EQ(bins_of(only_start()).find("lost")->as_int(), 0);
}

// Killed in the middle of a job: whole frames up to half a second before, and the name is free again.
TEST_F(LoopProcess, AKilledProgramLeavesWholeRowsAndFreesTheName) {
  const pid_t child = fork();
  if (child == 0) {
    rtm_loop* loop = open();
    for (;;) run(loop, 100);
  }
  const auto there = [&]() -> bool {
    std::error_code none;
    if (!std::filesystem::exists(folder_ + "/arm", none)) return false;
    for (const std::string& start : files_of(folder_ + "/arm", "2"))
      for (const std::string& log : files_of(start, "whole-"))
        if (read_sample_log(log).kinds().find('R') != std::string::npos) return true;
    return false;
  };
  for (int i = 0; i < 3000 && !there(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(child, SIGKILL);
  EXPECT_EQ(WTERMSIG(wait_for(child)), SIGKILL);
  const std::string log = files_of(only_start(), "whole-").front();
  const auto rows = rows_with_k(log, 5);
  EXPECT_FALSE(rows.empty());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i][0], static_cast<std::int64_t>(i));
  EXPECT_EQ(read_sample_log(log).kinds().find('E'), std::string::npos);
  rtm_loop_close(open(), nullptr, 0);
}

// As a program makes its thread one that knows of no flag (struct sched_attr, its first version).
bool become_deadline() {
  struct {
    std::uint32_t size = 48, policy = SCHED_DEADLINE;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 1'000'000, deadline_ns = 10'000'000, period_ns = 10'000'000;
  } attributes;
  return syscall(SYS_sched_setattr, 0, &attributes, 0u) == 0;
}

TEST_F(LoopProcess, ADeadlineThreadThatMayStartNoOtherIsToldSo) {
  SKIP_UNDER_EMULATION();
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  NEEDS_EVERY_CPU();
  EXPECT_EQ(
      in_child([this]() -> std::string {
        if (!become_deadline()) return "no deadline thread";
        rtm_loop_open("arm", kT, &options_, error_, sizeof error_);
        return error_;
      }),
      "thread rtm-writer: cannot be created: the kernel lets a thread of SCHED_DEADLINE start no other; "
      "set SCHED_FLAG_RESET_ON_FORK along with that policy, or open the loop before it");
}

// A loop that is kept to one CPU, also where all of the program is.
TEST_F(LoopProcess, TheWriterKeepsOffTheMeasuredCpu) {
  const auto before = get_affinity(0);
  if (before.size() < 2) GTEST_SKIP() << "needs two CPUs";
  set_affinity(0, {before[1]});
  rtm_loop* loop = open();
  std::vector<int> of_writer;
  for (const ThreadFacts& thread : audit_threads({}, {}))
    if (thread.name == "rtm-writer") of_writer = thread.cpus;
  set_affinity(0, before);
  rtm_loop_close(loop, nullptr, 0);
  ASSERT_FALSE(of_writer.empty());
  EXPECT_EQ(std::count(of_writer.begin(), of_writer.end(), before[1]), 0);
}

}  // namespace
}  // namespace rtmeter
