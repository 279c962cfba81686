// The three timers: every tick once and in order under catch_up, none served that went by under skip,
// whatever the machine does meanwhile. Nothing here depends on how long something takes.
#include <atomic>
#include <thread>

#include "harness.hpp"

namespace rtmeter_posix {
namespace {

constexpr std::int64_t kPeriod = 1'000'000, kHour = 3'600'000'000'000;

struct Call {
  std::int64_t expected_ns, entry_ns, exit_ns;
};

class TimerTest : public ::testing::TestWithParam<const char*> {
 protected:
  void start(rtm_timer_mode mode, std::int64_t period_ns, std::int32_t overrun = -1) {
    Asked asked;
    asked.options = {{"timer", GetParam()}};
    asked.overrun = overrun;
    instance_ = std::make_unique<Instance>(asked);
    ASSERT_TRUE(instance_->started()) << instance_->error().message;
    timer_ = instance_->timer({mode, period_ns, &TimerTest::on_fire, this}, &traits_);
    ASSERT_NE(timer_, nullptr) << instance_->error().message;
  }

  // Arms the timer as of now.
  void arm() {
    armed_ns_ = monotonic_ns();
    ASSERT_EQ(instance_->arm(timer_, armed_ns_), 0);
  }
  void spin_until(std::size_t calls) {
    wanted_ = calls;
    while (calls_.size() < calls) ASSERT_EQ(instance_->spin(INT64_MAX), 0);
  }
  // The tick that a call was for.
  std::int64_t tick(std::size_t call, std::int64_t period_ns = kPeriod) const {
    const std::int64_t since_ns = calls_[call].expected_ns - armed_ns_;
    EXPECT_EQ(since_ns % period_ns, 0);
    return since_ns / period_ns;
  }

  static void on_fire(void* user, const rtm_fire* fire) {
    auto* self = static_cast<TimerTest*>(user);
    Call call{fire->reported_expected_ns, monotonic_ns(), 0};
    EXPECT_EQ(fire->reported_actual_ns, RTM_ABSENT);
    EXPECT_GE(call.entry_ns, call.expected_ns) << "no tick comes early";
    if (self->calls_.size() == self->stall_at_)
      while (monotonic_ns() < call.expected_ns + self->stall_ns_) {
      }
    if (self->rearm_ && self->calls_.size() + 1 < self->wanted_) {
      self->armed_ns_ = monotonic_ns();
      EXPECT_EQ(self->instance_->arm(self->timer_, self->armed_ns_), 0);
    }
    call.exit_ns = monotonic_ns();
    self->calls_.push_back(call);
    if (self->calls_.size() == self->wanted_) self->instance_->interrupt();
  }

  std::unique_ptr<Instance> instance_;
  rtm_timer_traits traits_{};
  void* timer_ = nullptr;
  std::int64_t armed_ns_ = 0;
  std::vector<Call> calls_;
  std::size_t wanted_ = SIZE_MAX, stall_at_ = SIZE_MAX;
  std::int64_t stall_ns_ = 0;
  bool rearm_ = false;
};

TEST_P(TimerTest, CatchUpServesEveryTickInOrderAlsoThoseOfAStall) {
  start(RTM_PERIODIC, kPeriod);
  EXPECT_EQ(traits_.ticks, RTM_EVERY_TICK);
  EXPECT_EQ(traits_.overrun, RTM_CATCH_UP);
  EXPECT_EQ(traits_.reports_monotonic, 1);
  stall_at_ = 3;
  stall_ns_ = 10 * kPeriod;
  arm();
  spin_until(30);
  ASSERT_EQ(calls_.size(), 30U);
  for (std::size_t n = 0; n < calls_.size(); ++n) EXPECT_EQ(tick(n), static_cast<std::int64_t>(n) + 1);
}

TEST_P(TimerTest, SkipPassesOverWhatWentByUntilTheCallbackReturned) {
  start(RTM_PERIODIC, kPeriod, RTM_SKIP);
  EXPECT_EQ(traits_.ticks, RTM_JUMPS);
  EXPECT_EQ(traits_.overrun, RTM_SKIP);
  stall_at_ = 3;
  stall_ns_ = 10 * kPeriod;
  arm();
  spin_until(30);
  ASSERT_EQ(calls_.size(), 30U);
  for (std::size_t n = 1; n < calls_.size(); ++n) {
    EXPECT_GE(calls_[n].expected_ns, calls_[n - 1].exit_ns) << "served a tick that had gone by";
    if (tick(n) > tick(n - 1) + 1) {
      EXPECT_LT(calls_[n].expected_ns - kPeriod, calls_[n].entry_ns) << "passed over a tick to come";
    }
  }
  EXPECT_GE(tick(4), tick(3) + 10);
}

TEST_P(TimerTest, SpinSomeCatchesUpInOrder) {
  start(RTM_PERIODIC, kPeriod);
  arm();
  while (monotonic_ns() < armed_ns_ + 6 * kPeriod) {
  }
  while (calls_.size() < 10) ASSERT_EQ(instance_->spin_some(), 0);
  for (std::size_t n = 0; n < calls_.size(); ++n) EXPECT_EQ(tick(n), static_cast<std::int64_t>(n) + 1);
}

TEST_P(TimerTest, SpinSomeSkipsButServesTheTickWaitedFor) {
  start(RTM_PERIODIC, kPeriod, RTM_SKIP);
  arm();
  while (monotonic_ns() < armed_ns_ + 6 * kPeriod) {
  }
  while (calls_.empty()) ASSERT_EQ(instance_->spin_some(), 0);
  EXPECT_EQ(calls_.size(), 1U);
  EXPECT_EQ(tick(0), 1);
  while (calls_.size() < 2) ASSERT_EQ(instance_->spin_some(), 0);
  EXPECT_GE(tick(1), 7);
}

TEST_P(TimerTest, OneShotFiresOnceForEachTimeItIsArmed) {
  start(RTM_ONE_SHOT, kPeriod);
  rearm_ = true;
  arm();
  spin_until(20);
  EXPECT_EQ(instance_->spin(5 * kPeriod), 0);
  EXPECT_EQ(instance_->spin_some(), 0);
  EXPECT_EQ(calls_.size(), 20U);
}

TEST_P(TimerTest, OneShotReportsWhenItWasDue) {
  start(RTM_ONE_SHOT, kPeriod);
  for (int shot = 0; shot < 5; ++shot) {
    arm();
    calls_.clear();
    while (calls_.empty()) ASSERT_EQ(instance_->wait(kHour), 0);
    EXPECT_EQ(tick(0), 1);
  }
}

TEST_P(TimerTest, ArmingReplacesAPendingShot) {
  start(RTM_ONE_SHOT, 20 * kPeriod);
  for (int n = 0; n < 5; ++n) {
    arm();
    while (monotonic_ns() < armed_ns_ + 4 * kPeriod) {
    }
  }
  // Also one that has fired by now, but was not called back for.
  while (monotonic_ns() < armed_ns_ + 25 * kPeriod) {
  }
  arm();
  while (calls_.empty()) ASSERT_EQ(instance_->wait(kHour), 0);
  EXPECT_EQ(instance_->spin(30 * kPeriod), 0);
  EXPECT_EQ(calls_.size(), 1U);
  EXPECT_EQ(tick(0, 20 * kPeriod), 1);
}

TEST_P(TimerTest, CountsFromTheStampItIsGiven) {
  start(RTM_PERIODIC, kPeriod);
  armed_ns_ = monotonic_ns() - 3 * kPeriod - kPeriod / 2;
  ASSERT_EQ(instance_->arm(timer_, armed_ns_), 0);
  spin_until(5);
  for (std::size_t n = 0; n < 5; ++n) EXPECT_EQ(tick(n), static_cast<std::int64_t>(n) + 1);
}

TEST_P(TimerTest, WaitReturnsAfterACallbackAndWhenTheTimeIsOver) {
  start(RTM_PERIODIC, kPeriod);
  EXPECT_EQ(instance_->wait(kPeriod), 0) << "not armed: nothing to wait for but the timeout";
  EXPECT_TRUE(calls_.empty());
  arm();
  for (std::size_t n = 1; n <= 5; ++n) {
    while (calls_.size() < n) ASSERT_EQ(instance_->wait(kHour), 0);
    EXPECT_EQ(calls_.size(), n) << "wait() returns after one";
  }
}

TEST_P(TimerTest, InterruptEndsOneSpinFromAnotherThreadAndBeforehand) {
  start(RTM_PERIODIC, kHour);
  arm();
  instance_->interrupt();
  EXPECT_EQ(instance_->spin(INT64_MAX), 0);
  for (int n = 0; n < 3; ++n) {
    std::thread other([this] { instance_->interrupt(); });
    EXPECT_EQ(n % 2 == 0 ? instance_->spin(INT64_MAX) : instance_->wait(INT64_MAX), 0);
    other.join();
  }
  std::thread later([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    instance_->interrupt();
  });
  EXPECT_EQ(instance_->spin(-1), 0);
  later.join();
  EXPECT_TRUE(calls_.empty());
}

TEST_P(TimerTest, InterruptFromACallbackEndsThatSpinOnly) {
  start(RTM_PERIODIC, kPeriod);
  arm();
  wanted_ = 3;
  EXPECT_EQ(instance_->spin(INT64_MAX), 0);
  EXPECT_EQ(calls_.size(), 3U);
  wanted_ = 6;
  EXPECT_EQ(instance_->spin(INT64_MAX), 0);
  EXPECT_EQ(calls_.size(), 6U);
}

INSTANTIATE_TEST_SUITE_P(Makes, TimerTest, ::testing::Values("clock_nanosleep", "timerfd", "posix"),
                         [](const auto& make) { return std::string(make.param); });

TEST(TimerSetup, RefusesAnUnknownMakeAndASecondTimer) {
  Asked asked;
  asked.options = {{"timer", "hourglass"}};
  const Instance refused(asked);
  ASSERT_FALSE(refused.started());
  EXPECT_STREQ(refused.error().field, "option timer");
  EXPECT_STREQ(refused.error().value, "hourglass");
  EXPECT_STREQ(refused.error().remedy, "choose one of clock_nanosleep, timerfd, posix");

  Instance instance({});
  const rtm_timer_spec spec{RTM_PERIODIC, kPeriod, [](void*, const rtm_fire*) {}, nullptr};
  rtm_timer_traits traits{};
  EXPECT_NE(instance.timer(spec, &traits), nullptr);
  EXPECT_EQ(instance.timer(spec, &traits), nullptr);
  EXPECT_STREQ(instance.error().field, "timer");
}

TEST(TimerSetup, AWakeupNeedsNothing) {
  Asked asked;
  asked.measurement = RTM_WAKEUP;
  Instance instance(asked);
  ASSERT_TRUE(instance.started());
  EXPECT_NE(instance.node(), nullptr);
  EXPECT_EQ(instance.publisher(instance.node(), "topic"), nullptr);
  EXPECT_STREQ(instance.error().field, "measurement");
}

}  // namespace
}  // namespace rtmeter_posix
