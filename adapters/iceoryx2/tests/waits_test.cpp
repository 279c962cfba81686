// A process that hears one topic waits as long as it is told: not by its socket's own limit, which Linux
// counts in ticks, and which less than a microsecond switches off. Whoever notifies it makes one system call.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "rtmeter/adapter.h"
#include "system/sends.hpp"

extern "C" const rtm_adapter rtm_rust_adapter;

namespace {
std::atomic<bool> refuses{false};
std::atomic<int> limits{0};
}  // namespace

// In place of the C library's. A limit of none would be waited for without an end.
extern "C" int setsockopt(int fd, int level, int name, const void* value, socklen_t length) noexcept {
  if (level == SOL_SOCKET && name == SO_RCVTIMEO) {
    ++limits;
    if (refuses) return -1;
  }
  static const auto real = reinterpret_cast<decltype(&setsockopt)>(dlsym(RTLD_NEXT, "setsockopt"));
  return real(fd, level, name, value, length);
}

namespace {

class Iceoryx2Waits : public ::testing::Test {
 protected:
  void SetUp() override {
    session_ = "waits-" + std::to_string(getpid());
    run_.measurement = RTM_CHAIN;
    run_.receive = RTM_RECEIVE_SPIN_ONCE;
    run_.payload_bytes = 64;
    run_.history_depth = 4;
    run_.session = session_.c_str();
    run_.subscribers = run_.publishers = 1;
    ASSERT_EQ(rtm_rust_adapter.start(&run_, &self_, &error_), 0) << error_.message;
    ASSERT_EQ(rtm_rust_adapter.create_node(self_, "node", &node_, &error_), 0) << error_.message;
    void* subscriber = nullptr;
    ASSERT_EQ(rtm_rust_adapter.create_publisher(node_, "topic", &publisher_, &error_), 0) << error_.message;
    ASSERT_EQ(rtm_rust_adapter.create_subscriber(node_, "topic", &note, &heard_, &subscriber, &error_), 0)
        << error_.message;
    limits = 0;
    refuses = true;
  }
  void TearDown() override {
    refuses = false;
    rtm_rust_adapter.stop(self_);
  }
  static void note(void* heard, const rtm_message* message) {
    static_cast<std::vector<std::uint64_t>*>(heard)->push_back(message->sequence);
  }

  std::string session_;
  rtm_run run_{};
  rtm_error error_{};
  void *self_ = nullptr, *node_ = nullptr, *publisher_ = nullptr;
  std::vector<std::uint64_t> heard_;
};

TEST_F(Iceoryx2Waits, EndWithoutASocketsLimit) {
  for (const std::int64_t timeout_ns : {5'000'000, 1'000'000, 999'999})
    EXPECT_EQ(rtm_rust_adapter.wait(self_, timeout_ns), 0);
  EXPECT_EQ(limits, 0);
  EXPECT_TRUE(heard_.empty());
}

TEST_F(Iceoryx2Waits, OfLessThanAMicrosecondEnd) {
  for (std::int64_t timeout_ns = 0; timeout_ns < 20'000; timeout_ns += 20)  // some of it passes before
    ASSERT_EQ(rtm_rust_adapter.wait(self_, timeout_ns), 0);
  EXPECT_EQ(limits, 0);
}

TEST_F(Iceoryx2Waits, EndWithAMessageOrAnInterruption) {
  const std::int64_t hour_ns = 3'600'000'000'000;
  for (int n = 1; n <= 100; ++n) {  // before the wait or during it
    std::thread sender([this] {
      const rtm_message message{7, nullptr, 0};
      EXPECT_EQ(rtm_rust_adapter.publish(publisher_, &message), 0);
    });
    EXPECT_EQ(rtm_rust_adapter.wait(self_, hour_ns), 0);
    sender.join();
    EXPECT_EQ(heard_.size(), static_cast<std::size_t>(n));
    std::thread other([this] { rtm_rust_adapter.interrupt(self_); });
    EXPECT_EQ(rtm_rust_adapter.wait(self_, hour_ns), 0);
    other.join();
  }
}

TEST_F(Iceoryx2Waits, AreOfAProcessAndTopicHoweverManyHearIt) {
  std::vector<std::uint64_t> more;
  void* subscriber = nullptr;
  for (int n = 0; n < 2; ++n)
    ASSERT_EQ(rtm_rust_adapter.create_subscriber(node_, "topic", &note, &more, &subscriber, &error_), 0);
  const auto sent = [] {
    return rtmeter::sends_so_far()[static_cast<std::size_t>(rtmeter::Wire::unix_)].calls;
  };
  const auto before = sent();
  const rtm_message message{7, nullptr, 0};
  ASSERT_EQ(rtm_rust_adapter.publish(publisher_, &message), 0);
  EXPECT_EQ(sent() - before, 1U);
  ASSERT_EQ(rtm_rust_adapter.wait(self_, 0), 0);
  EXPECT_EQ(heard_.size() + more.size(), 3U);
}

}  // namespace
