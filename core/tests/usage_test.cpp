#include "system/usage.hpp"

#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <thread>

#include "child.hpp"
#include "emulated.hpp"
#include "system/affinity.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

std::int64_t count(const UsageWindow& window, const char* key) {
  const Json j = window.to_json();
  return j.find(key)->is_null() ? -1 : j.find(key)->as_int();
}

void move_to(int cpu) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(cpu, &mask);
  if (sched_setaffinity(0, sizeof mask, &mask) != 0) throw std::runtime_error("sched_setaffinity");
}

// Moves there and back twice in a window: three migrations, since the first move is before it.
std::int64_t migrations_counted(UsageWindow& window, const std::vector<int>& cpus) {
  move_to(cpus[0]);
  window.open();
  for (int i = 1; i <= 3; ++i) move_to(cpus[static_cast<std::size_t>(i % 2)]);
  window.close();
  return count(window, "migrations");
}

// Sanitizers would fault on pages of their own beside each.
[[gnu::no_sanitize("address", "thread")]] void write_each_page(volatile char* bytes, std::size_t count,
                                                               std::size_t page) {
  for (std::size_t i = 0; i < count; ++i) bytes[i * page] = 1;
}

TEST(UsageWindow, AnEmptyWindowHasNoFaults) {
  UsageWindow window;
  for (int i = 0; i < 100; ++i) {
    window.open();
    window.close();
    EXPECT_EQ(count(window, "minor_faults"), 0);
    EXPECT_EQ(count(window, "major_faults"), 0);
  }
}

// Whoever reports on a thread that hangs must not read what that thread may be writing.
TEST(UsageWindow, TellsNothingBeforeItIsClosed) {
  UsageWindow window;
  EXPECT_EQ(count(window, "minor_faults"), -1);
  window.open();
  EXPECT_EQ(count(window, "minor_faults"), -1);
  window.close();
  EXPECT_GE(count(window, "minor_faults"), 0);
}

TEST(UsageWindow, CountsEachFreshPage) {
  SKIP_UNDER_EMULATION();
  constexpr int kPages = 37;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* block = mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  ASSERT_EQ(madvise(block, kPages * page, MADV_NOHUGEPAGE), 0);
  UsageWindow window;
  window.open();
  write_each_page(static_cast<volatile char*>(block), kPages, page);
  window.close();
  EXPECT_EQ(count(window, "minor_faults"), kPages);
  munmap(block, kPages * page);
}

TEST(UsageWindow, CountsVoluntarySwitches) {
  UsageWindow window;
  window.open();
  for (int i = 0; i < 5; ++i) usleep(2000);
  window.close();
  EXPECT_GE(count(window, "voluntary_switches"), 1);
  EXPECT_LE(count(window, "voluntary_switches"), 5);
}

TEST(UsageWindow, CountsEachMigration) {
  const auto cpus = get_affinity(0);
  if (cpus.size() < 2) GTEST_SKIP() << "needs two CPUs";
  EXPECT_EQ(in_child([&] {
              UsageWindow window;
              return std::to_string(migrations_counted(window, cpus)) + " " +
                     std::to_string(migrations_counted(window, cpus));
            }),
            "3 3");
}

TEST(UsageWindow, CountsMigrationsByPerfWhereProcDoesNotTellThem) {
  NEEDS_CAPABILITY(CAP_SYS_CHROOT);
  const auto cpus = get_affinity(0);
  if (cpus.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const std::string said = in_child([&] {
    if (chroot("/sys/kernel") != 0) throw std::runtime_error("chroot");  // no /proc there
    UsageWindow window;
    return std::to_string(migrations_counted(window, cpus)) + " " +
           std::to_string(migrations_counted(window, cpus));
  });
  if (said == "-1 -1") GTEST_SKIP() << "needs perf events";
  EXPECT_EQ(said, "3 3");
}

TEST(UsageWindow, MigrationsAreNullWhereNothingTellsThem) {
  NEEDS_CAPABILITY(CAP_SYS_CHROOT);
  if (read_text("/proc/sys/kernel/perf_event_paranoid").value_or("-1") < "2") {
    GTEST_SKIP() << "perf events are open to everybody here";
  }
  EXPECT_CONTAINS(in_child([] {
                    if (chroot("/sys/kernel") != 0) throw std::runtime_error("chroot");
                    drop_privileges();
                    UsageWindow window;
                    window.open();
                    window.close();
                    return window.to_json().dump();
                  }),
                  "\"migrations\":null");
}

TEST(UsageWindow, TwoThreadsMakeNoWindow) {
  UsageWindow window;
  window.open();
  std::thread([&] { window.close(); }).join();
  EXPECT_EQ(
      window.to_json().dump(),
      R"({"cpu_ns":null,"minor_faults":null,"major_faults":null,"voluntary_switches":null,"involuntary_switches":null,)"
      R"("migrations":null})");
}

// All of it is worked for, so that the time on the CPU is what the thread's own clock says.
TEST(UsageWindow, CountsTheProcessorTimeOfItsThreadOrOfTheOneThatItFollows) {
  const auto now_ns = [] {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
  };
  const auto work = [&] {
    for (const auto end = now_ns() + 20'000'000; now_ns() < end;) {
    }
  };
  UsageWindow own;
  const std::int64_t before = now_ns();
  own.open();
  work();
  own.close();
  EXPECT_GE(count(own, "cpu_ns"), 20'000'000);
  EXPECT_LE(count(own, "cpu_ns"), now_ns() - before);

  UsageWindow followed;
  std::atomic<int> step{0}, tid{0};
  std::thread thread([&] {
    tid = gettid();
    step.wait(0);
    work();
    step = 2;
    step.notify_all();
    step.wait(2);
  });
  const auto wait_until_it_sleeps = [&] {
    const std::string stat = "/proc/self/task/" + std::to_string(tid) + "/stat";
    while (read_text(stat).value_or("").find(") S ") == std::string::npos) std::this_thread::yield();
  };
  while (tid == 0) std::this_thread::yield();
  followed.follow(tid);
  wait_until_it_sleeps();
  followed.open();
  step = 1;
  step.notify_all();
  step.wait(1);
  wait_until_it_sleeps();
  followed.close();
  step = 3;
  step.notify_all();
  thread.join();
  EXPECT_GE(count(followed, "cpu_ns"), 20'000'000);
  EXPECT_LE(count(followed, "cpu_ns"), 2 * count(own, "cpu_ns") + 20'000'000);
}

TEST(UsageWindow, CountsOverrunsWhereAPolicyHasThem) {
  std::atomic<std::int64_t> overruns{3};
  UsageWindow window;
  EXPECT_EQ(window.to_json().find("deadline_overruns"), nullptr);
  window.count_overruns(overruns);
  window.open();
  overruns = 5;
  window.close();
  EXPECT_EQ(count(window, "deadline_overruns"), 2);
}

TEST(UsageWindow, ANeverOpenedOneKnowsNothing) { EXPECT_EQ(count(UsageWindow(), "minor_faults"), -1); }

}  // namespace
}  // namespace rtmeter
