// The bell: no ring is missed, whether it comes before the sleep or in it.
#include "rtmeter/bell.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

namespace rtmeter {
namespace {

constexpr std::int64_t kForever = INT64_MAX;

// Waits until the thread sleeps in the kernel, in a futex.
void await_sleep(int tid) {
  for (std::string call; call != std::to_string(kFutexCall); std::this_thread::yield())
    std::ifstream("/proc/self/task/" + std::to_string(tid) + "/syscall") >> call;
}

template <typename Kind>
class Bells : public testing::Test {};
using Kinds = testing::Types<ThreadBell, ProcessBell>;
TYPED_TEST_SUITE(Bells, Kinds);

TYPED_TEST(Bells, ARingBeforeTheSleepIsNotMissed) {
  TypeParam bell{};
  const std::uint32_t ticket = bell.ticket();
  bell.ring();
  EXPECT_EQ(bell.wait(ticket, kForever), 0);
  EXPECT_EQ(bell.wait_until(ticket, kForever), 0);
}

TYPED_TEST(Bells, ARingEndsTheSleep) {
  if (!std::ifstream("/proc/self/syscall")) GTEST_SKIP() << "needs /proc/PID/syscall";
  for (const bool until : {false, true}) {
    TypeParam bell{};
    std::atomic<int> tid{0};
    std::thread sleeper([&] {
      const std::uint32_t ticket = bell.ticket();
      tid = gettid();
      while (bell.ticket() == ticket)  // a signal may end it, too
        EXPECT_EQ(until ? bell.wait_until(ticket, kForever) : bell.wait(ticket, kForever), 0);
    });
    while (tid == 0) std::this_thread::yield();
    await_sleep(tid);
    bell.ring();
    sleeper.join();
  }
}

TYPED_TEST(Bells, WithoutARingTheSleepEndsWithItsTime) {
  TypeParam bell{};
  EXPECT_EQ(bell.wait(bell.ticket(), 1'000), 0);
  EXPECT_EQ(bell.wait_until(bell.ticket(), 1'000), 0);  // long past
}

TYPED_TEST(Bells, ATimeThatIsNoneIsAnError) {
  TypeParam bell{};
  EXPECT_LT(bell.wait(bell.ticket(), -1), 0);
}

}  // namespace
}  // namespace rtmeter
