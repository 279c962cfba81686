// A periodic timer whose middleware calls back on a thread of its own, and goes on when the run has ended.
#include "measure/periodic_timer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "log/log_writer.hpp"
#include "rtmeter/adapter.hpp"
#include "sample_log_file.hpp"

namespace rtmeter {
namespace {

constexpr std::int64_t kNeverSoon = 3'600'000'000'000;

// What spin() does, and the timer that it made.
struct Middleware {
  std::function<void()> spin;
  rtm_timer_spec timer{};

  void call_back() const {
    const rtm_fire fire{RTM_ABSENT, RTM_ABSENT};
    timer.on_fire(timer.user, &fire);
  }
};
Middleware* middleware = nullptr;  // the test's

class WithoutTimers final : public Adapter {
 public:
  explicit WithoutTimers(const rtm_run& /*run*/) {}
  static void describe_static(Sink& /*sink*/) {}
  void* create_timer(void* /*node*/, const rtm_timer_spec& spec, rtm_timer_traits& traits) override {
    middleware->timer = spec;
    traits = {RTM_EVERY_TICK, RTM_CATCH_UP, 0};
    return this;
  }
  int arm(void* /*timer*/, std::int64_t /*now_ns*/) noexcept override { return 0; }
  int spin(std::int64_t /*timeout_ns*/) noexcept override {
    middleware->spin();
    return 0;
  }
};

Config config_of(const std::string& log) {
  Config config;
  config.measurement = RTM_TIMER;
  config.period_ns = kNeverSoon;
  config.samples = 1'000;
  config.log = log;
  return config;
}

class PeriodicTimerTest : public testing::Test {
 protected:
  PeriodicTimerTest() {
    middleware = &middleware_;
    session_.start();
    recorder_.start({});
  }

  const testing_help::TemporaryDirectory directory_;
  const Config config_ = config_of(directory_ / "test.rtlog");
  std::atomic<bool> stop_{false};
  MonotonicClock clock_{stop_};
  Middleware middleware_;
  Session session_{*adapter_table<WithoutTimers>(), config_, RTM_SPIN, RTM_RECEIVE_SPIN};
  LogWriter log_{config_.log, testing_help::header_of_columns(columns_of(config_))};
  Recorder recorder_{log_, columns_of(config_).size(), 256, WhenFull::count, nullptr};
  UsageWindow usage_;
  Counters counters_;
  Watchdog watchdog_{INT64_MAX};
  Bench bench_{config_,   RTM_SPIN, RTM_RECEIVE_SPIN, clock_, session_,
               recorder_, usage_,   counters_,        stop_,  watchdog_};
};

TEST_F(PeriodicTimerTest, WhatItCallsAfterTheRunIsNotRecorded) {
  const auto measurement = make_periodic(bench_);
  measurement->set_up();
  middleware_.spin = [&] {
    for (int tick = 0; tick < 3; ++tick) std::thread([&] { middleware_.call_back(); }).join();
    stop_ = true;  // interrupted
  };
  measurement->run();
  EXPECT_EQ(recorder_.recorded(), 3u);
  middleware_.call_back();
  EXPECT_EQ(recorder_.recorded(), 3u);
}

// A client that takes its time over a tick.
struct Slow final : PeriodicTimer::Client {
  std::atomic<bool> entered{false}, left{false};
  bool on_tick(std::int64_t /*k*/, std::int64_t /*now_ns*/, const rtm_fire& /*fire*/) noexcept override {
    entered = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    left = true;
    return false;
  }
};

TEST_F(PeriodicTimerTest, TheRunEndsOnceTheCallbackUnderWayHasReturned) {
  Slow client;
  PeriodicTimer timer(bench_, client);
  timer.create(session_.create_node("timer"));
  std::thread caller;
  middleware_.spin = [&] {
    caller = std::thread([&] { middleware_.call_back(); });
    while (!client.entered) std::this_thread::yield();
    stop_ = true;
  };
  timer.run();
  EXPECT_TRUE(client.left);
  caller.join();
}

}  // namespace
}  // namespace rtmeter
