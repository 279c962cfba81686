// A round trip's client whose receiver spins on a thread of its own: how the answer is handed over to the
// sender, which sleeps on a futex, and how the receiver ends. A hang is a failure: the alarm ends the test.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <mutex>

#include "by_hand.hpp"
#include "emulated.hpp"
#include "rtmeter/event_count.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;
using Rows = std::vector<Row>;

constexpr std::int64_t kHour = 3'600'000'000'000;
constexpr int kLastInterrupt = 3;  // that ends the spin: the first may come before it begins

bool sleeps_in_a_futex(int tid) {
  std::string call;
  std::ifstream("/proc/self/task/" + std::to_string(tid) + "/syscall") >> call;
  return call == std::to_string(kFutexCall);
}

Config three_round_trips(InFlight in_flight) {
  Config config = config_by_hand(RTM_ROUNDTRIP, 1, 2);
  config.role = RTM_ROLE_CLIENT;
  config.in_flight = in_flight;
  config.loss_timeout_ns = kHour;  // of real time, where the sender sleeps on the futex
  return config;
}

// Answers what was sent once the sender sleeps on the futex, and not before it has slept to `sleeps`
// releases.
class Spun : public ByHand {
 public:
  explicit Spun(InFlight in_flight) : ByHand(three_round_trips(in_flight), RTM_SPIN, RTM_RECEIVE_SPIN) {
    alarm(60);
    middleware.publish = [this](const Sent& sent) {
      if (is_set_up_) return note([&] { sent_.push_back(sent); });
      middleware.deliver("pong", sent);
    };
    middleware.wait = [this](std::int64_t) { ++waits; };
    middleware.spin = [this](std::int64_t) {
      ++spins;
      while (middleware.interrupts < kLastInterrupt) answer();
    };
    clock.on_sleep = [this] { note([this] { ++sleeps_; }); };
    measurement->set_up();
    is_set_up_ = true;
    waits = 0;  // it looked for its server
    measurement->begin();
    clock.at_ns = 0;
  }
  ~Spun() { alarm(0); }
  Spun(const Spun&) = delete;
  Spun& operator=(const Spun&) = delete;

  std::function<std::size_t(std::size_t k)> sleeps_before = [](std::size_t) {
    return 0;
  };  // of the answer to k
  std::atomic<int> spins{0}, waits{0};
  Rows measured() {
    measurement->run();
    return rows();
  }

 private:
  template <typename What>
  void note(What&& what) {
    const std::lock_guard lock(mutex_);
    what();
  }
  // Receiver.
  void answer() {
    usleep(100);
    if (!sleeps_in_a_futex(sender_)) return;
    const std::lock_guard lock(mutex_);  // what the sender did before is seen from here
    const bool is_greeting = answered_ == 0;
    if (answered_ == sent_.size() || (!is_greeting && sleeps_ < sleeps_before(answered_ - 1))) return;
    const Sent sent = sent_[answered_++];
    middleware.deliver("pong", sent);
  }

  const int sender_ = static_cast<int>(gettid());
  bool is_set_up_ = false;
  std::mutex mutex_;
  std::vector<Sent> sent_;  // the greeting, then what is measured
  std::size_t answered_ = 0, sleeps_ = 0;
};

class HandOver : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_UNDER_EMULATION();
    if (!std::ifstream("/proc/self/syscall")) GTEST_SKIP() << "needs /proc/PID/syscall";
  }
};

// Each answer comes when the sender has slept to the next release and waits for it.
TEST_F(HandOver, WakesASenderThatWaitsAtTheNextRelease) {
  Spun spun(InFlight::one);
  spun.sleeps_before = [](std::size_t k) { return std::min<std::size_t>(k + 2, 3); };
  EXPECT_EQ(spun.measured(),
            (Rows{{100, 100, 200, A, kWarm}, {200, 200, 300, A, kServed}, {300, 300, 300, A, kServed}}));
  EXPECT_EQ(spun.waits, 0) << "the sender received, too";
}

TEST_F(HandOver, WakesASenderThatHasSentAll) {
  Spun spun(InFlight::open);
  spun.sleeps_before = [](std::size_t) { return 3; };
  EXPECT_EQ(spun.measured(),
            (Rows{{100, 100, 300, A, kWarm}, {200, 200, 300, A, kServed}, {300, 300, 300, A, kServed}}));
  EXPECT_EQ(spun.waits, 0) << "the sender received, too";
}

// Nothing but the end interrupts the spin, again and again until it has ended, and it is not begun anew.
TEST_F(HandOver, TheReceiverEndsThoughItMissesTheFirstInterrupts) {
  Spun spun(InFlight::one);
  spun.sleeps_before = [](std::size_t k) { return std::min<std::size_t>(k + 2, 3); };
  spun.measurement->run();
  EXPECT_EQ(spun.spins, 1);
  EXPECT_GE(spun.middleware.interrupts, kLastInterrupt);
}

// Also of a run that never was.
TEST_F(HandOver, TheReceiverEndsWithoutARun) {
  Spun spun(InFlight::one);
  spun.measurement->end();
  EXPECT_EQ(spun.spins, 1);
  spun.measurement->end();
}

}  // namespace
}  // namespace rtmeter
