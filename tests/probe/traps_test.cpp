// The traps catch what they are for, pass it on unchanged, and see nothing else.
#include "traps.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

namespace rtmeter::traps {
namespace {

std::uint64_t allocations(Side side) { return counts().allocations[static_cast<std::size_t>(side)].load(); }
std::uint64_t calls(Side side, long number) {
  return counts().calls[static_cast<std::size_t>(side)][static_cast<std::size_t>(number)].load();
}

// Runs the body in a thread of its own, which is watched while it runs; false if there is no seccomp.
template <typename Body>
bool watched(Body body) {
  bool trapped = false;
  std::thread([&] {
    trapped = set_trap();
    if (!trapped) return;
    watch_thread();
    open_window();
    body();
    close_window();
  }).join();
  return trapped;
}

#define WATCH(body) \
  if (!watched(body)) GTEST_SKIP() << "needs seccomp filters"

TEST(Traps, EachKindOfAllocationIsCounted) {
  const std::uint64_t before = allocations(Side::core);
  const auto kinds = [] {
    void* volatile block = std::malloc(8);
    block = std::realloc(block, 16);
    std::free(block);
    block = std::calloc(2, 8);
    std::free(block);
    block = std::aligned_alloc(64, 64);
    std::free(block);
    void* aligned = nullptr;
    if (posix_memalign(&aligned, 64, 64) == 0) std::free(aligned);
    block = ::operator new(8);
    ::operator delete(block);
    const auto text = std::make_unique<std::string>(100, 'x');
  };
  WATCH(kinds);
  EXPECT_EQ(allocations(Side::core) - before, 3U + 2 + 2 + 2 + 2 + 4);
}

TEST(Traps, SystemCallsAreCountedAndDoWhatTheyDo) {
  const std::uint64_t before = calls(Side::core, SYS_getppid);
  pid_t parent = 0;
  int error = 0;
  std::string read_back(3, ' ');
  const auto body = [&] {
    for (int i = 0; i < 5; ++i) parent = getppid();
    error = close(-1) == 0 ? 0 : errno;
    int ends[2];
    if (pipe(ends) != 0 || write(ends[1], "abc", 3) != 3 || read(ends[0], read_back.data(), 3) != 3)
      read_back = "";
    close(ends[0]);
    close(ends[1]);
  };
  WATCH(body);
  EXPECT_EQ(calls(Side::core, SYS_getppid) - before, 5U);
  EXPECT_EQ(parent, getppid());
  EXPECT_EQ(error, EBADF);
  EXPECT_EQ(read_back, "abc");
}

TEST(Traps, ACallOfSixArgumentsAndOneThatSetsTheSignalMaskWork) {
  bool mapped = false, blocked = false;
  const auto body = [&] {
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapped = page != MAP_FAILED;
    if (mapped) *static_cast<volatile char*>(page) = 1;
    sigset_t set, now;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    blocked = sigismember(&now, SIGUSR2) == 1;
  };
  WATCH(body);
  EXPECT_TRUE(mapped);
  EXPECT_TRUE(blocked);
}

TEST(Traps, TheSideThatRunsIsTold) {
  const std::uint64_t core = calls(Side::core, SYS_getppid), adapter = calls(Side::adapter, SYS_getppid);
  const auto body = [] {
    const Crossing to_adapter(Side::adapter);
    getppid();
    {
      const Crossing to_core(Side::core);
      getppid();
      getppid();
    }
    getppid();
  };
  WATCH(body);
  EXPECT_EQ(calls(Side::core, SYS_getppid) - core, 2U);
  EXPECT_EQ(calls(Side::adapter, SYS_getppid) - adapter, 2U);
}

TEST(Traps, NothingIsCountedOutsideTheWindowOrOnOtherThreads) {
  const std::uint64_t before = calls(Side::core, SYS_getppid) + allocations(Side::core);
  open_window();  // this thread is not watched
  getppid();
  void* volatile block = std::malloc(1);
  std::free(block);
  close_window();
  const auto nothing = [] {};
  WATCH(nothing);
  std::thread([] {
    set_trap();
    watch_thread();
    getppid();  // no window
  }).join();
  EXPECT_EQ(calls(Side::core, SYS_getppid) + allocations(Side::core), before);
}

TEST(Traps, ReadingTheClockIsNoSystemCall) {
  const std::uint64_t before = calls(Side::core, SYS_clock_gettime);
  const auto body = [] {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
  };
  WATCH(body);
  EXPECT_EQ(calls(Side::core, SYS_clock_gettime), before)
      << "this machine's clock source has no vDSO: a stamp costs a system call "
         "(/sys/devices/system/clocksource/clocksource0/current_clocksource)";
}

}  // namespace
}  // namespace rtmeter::traps
