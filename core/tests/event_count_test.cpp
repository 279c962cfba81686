// The event_count: no event is missed, whether it comes before the sleep or in it.
#include "rtmeter/event_count.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "emulated.hpp"

namespace rtmeter {
namespace {

constexpr std::int64_t kForever = INT64_MAX;

// Waits until the thread sleeps in the kernel, in a futex.
void await_sleep(int tid) {
  for (std::string call; call != std::to_string(kFutexCall); std::this_thread::yield())
    std::ifstream("/proc/self/task/" + std::to_string(tid) + "/syscall") >> call;
}

template <typename Kind>
class EventCounts : public testing::Test {};
using Kinds = testing::Types<ThreadEventCount, ProcessEventCount>;
TYPED_TEST_SUITE(EventCounts, Kinds);

TYPED_TEST(EventCounts, AnEventBeforeTheSleepIsNotMissed) {
  TypeParam event_count{};
  const std::uint32_t ticket = event_count.ticket();
  event_count.notify();
  EXPECT_EQ(event_count.wait(ticket, kForever), 0);
  EXPECT_EQ(event_count.wait_until(ticket, kForever), 0);
}

TYPED_TEST(EventCounts, AnEventEndsTheSleep) {
  SKIP_UNDER_EMULATION();
  if (!std::ifstream("/proc/self/syscall")) GTEST_SKIP() << "needs /proc/PID/syscall";
  for (const bool until : {false, true}) {
    TypeParam event_count{};
    std::atomic<int> tid{0};
    std::thread sleeper([&] {
      const std::uint32_t ticket = event_count.ticket();
      tid = gettid();
      while (event_count.ticket() == ticket)  // a signal may end it, too
        EXPECT_EQ(until ? event_count.wait_until(ticket, kForever) : event_count.wait(ticket, kForever), 0);
    });
    while (tid == 0) std::this_thread::yield();
    await_sleep(tid);
    event_count.notify();
    sleeper.join();
  }
}

TYPED_TEST(EventCounts, WithoutAnEventTheSleepEndsWithItsTime) {
  TypeParam event_count{};
  EXPECT_EQ(event_count.wait(event_count.ticket(), 1'000), 0);
  EXPECT_EQ(event_count.wait_until(event_count.ticket(), 1'000), 0);  // long past
}

TYPED_TEST(EventCounts, ATimeThatIsNoneIsAnError) {
  TypeParam event_count{};
  EXPECT_LT(event_count.wait(event_count.ticket(), -1), 0);
}

}  // namespace
}  // namespace rtmeter
