// What polls at real-time priority is given a CPU of its own, or refused.
#include "probe/polling.hpp"

#include <gtest/gtest.h>

#include "errors.hpp"

namespace rtmeter {
namespace {

using Policy = Scheduling::Policy;

Config client(InFlight in_flight, Policy policy = Policy::fifo) {
  Config config;
  config.measurement = RTM_ROUNDTRIP;
  config.role = RTM_ROLE_CLIENT;
  config.in_flight = in_flight;
  config.receive = RTM_RECEIVE_POLL;
  config.scheduling = {policy, 80};
  return config;
}
Json described(const char* background = nullptr) {
  Json description = Json::object();
  if (background != nullptr) description["background"] = Json::array().push(background);
  description["components"] = Json::array().push("two_threads").push("one_thread");
  description["option"]["executor"] = "static|events: which one";
  return description;
}
bool runs(const Config& config, const CpuShare& share, const Json& description = described(),
          rtm_receive receive = RTM_RECEIVE_POLL) {
  try {
    check_polling(description, config, RTM_SPIN, receive, share);
    return true;
  } catch (const Failure&) {
    return false;
  }
}
const CpuShare kOne{{1}, true}, kTwo{{0, 1}, true}, kOneUnthrottled{{1}, false},
    kTwoUnthrottled{{0, 1}, false};

TEST(Polling, AReceiverThatPollsIsNotOnItsSendersOnlyCpu) {
  EXPECT_FALSE(runs(client(InFlight::open), kOne));
  EXPECT_FALSE(runs(client(InFlight::open, Policy::rr), kOne));
  EXPECT_TRUE(runs(client(InFlight::open), kTwo));
  EXPECT_TRUE(runs(client(InFlight::open, Policy::other), kOne));
  EXPECT_TRUE(runs(client(InFlight::one), kOne)) << "it sends itself";
  EXPECT_TRUE(runs(client(InFlight::open), kOne, described(), RTM_RECEIVE_SPIN));
  Config pinned = client(InFlight::open);
  pinned.cpus = {1};
  EXPECT_FALSE(runs(pinned, kTwo));
}

TEST(Polling, WithoutThrottlingRtmeterNeedsACpuToo) {
  EXPECT_FALSE(runs(client(InFlight::one), kOneUnthrottled));
  EXPECT_TRUE(runs(client(InFlight::one), kTwoUnthrottled));
  Config pinned = client(InFlight::one);
  pinned.cpus = {1};
  EXPECT_TRUE(runs(pinned, kTwoUnthrottled)) << "rtmeter's own threads keep off the measured CPU";
}

TEST(Polling, AMeasuredThreadThatPollsByItsDriveIsOne) {
  Config config;
  config.measurement = RTM_TIMER;
  config.scheduling = {Policy::fifo, 80};
  EXPECT_THROW(check_polling(described("timer"), config, RTM_POLL, RTM_RECEIVE_SPIN, kOne), Failure);
  EXPECT_NO_THROW(check_polling(described("timer"), config, RTM_SPIN, RTM_RECEIVE_SPIN, kOne));
}

TEST(Polling, ThreadsOfTheMiddlewareNeedACpuUnlessTheyComeFirst) {
  const Config config = client(InFlight::one);
  EXPECT_FALSE(runs(config, kOne, described("roundtrip")));
  EXPECT_TRUE(runs(config, kOne, described("cycle")));
  EXPECT_TRUE(runs(config, kTwo, described("roundtrip")));
  Config elsewhere = config;
  elsewhere.cpus = {1}, elsewhere.child_cpus = {0};
  EXPECT_TRUE(runs(elsewhere, kTwo, described("roundtrip")));
  for (const auto& [priority, is_above] : {std::pair{81, true}, std::pair{80, false}}) {
    Config above = config;
    above.child_threads = Scheduling{Policy::fifo, priority};
    EXPECT_EQ(runs(above, kOne, described("roundtrip")), is_above) << priority;
    for (const char* policy : {"fifo:", "rr:"}) {
      Config by_option = config;
      by_option.options = {{"threads", policy + std::to_string(priority)}};
      EXPECT_EQ(runs(by_option, kOne, described("roundtrip")), is_above) << policy << priority;
    }
  }
  for (const char* unknown : {"81", "fifo", "other:81", "fifo:", "fifo:81 "}) {
    Config by_option = config;
    by_option.options = {{"threads", unknown}};
    EXPECT_FALSE(runs(by_option, kOne, described("roundtrip"))) << unknown;
  }
  Config named = config;
  named.options = {{"threads", "recv=fifo:20"}};
  EXPECT_TRUE(runs(named, kOne, described("roundtrip")));
}

TEST(Polling, ThreadsOfTheMiddlewareMayBeNeededInOneShapeOnly) {
  Config config = client(InFlight::one);
  EXPECT_FALSE(runs(config, kOne, described("roundtrip executor=static"))) << "the default";
  EXPECT_TRUE(runs(config, kOne, described("roundtrip executor=events")));
  config.options = {{"executor", "events"}};
  EXPECT_FALSE(runs(config, kOne, described("roundtrip executor=events")));
  config.measurement = RTM_CYCLE;
  config.role = RTM_ROLE_SINGLE;
  EXPECT_FALSE(runs(config, kOne, described("cycle components=two_threads"))) << "the default";
  config.components = RTM_ONE_THREAD;
  EXPECT_TRUE(runs(config, kOne, described("cycle components=two_threads")));
}

TEST(Polling, SaysWhatIsRefusedAndWhy) {
  const auto refused = [](const Config& config) {
    try {
      check_polling(described(), config, RTM_SPIN, RTM_RECEIVE_POLL, kOne);
    } catch (const Failure& failure) {
      return failure.field() + ": " + failure.value() + " " + failure.what();
    }
    return std::string();
  };
  Config config = client(InFlight::open);
  EXPECT_EQ(refused(config),
            "receive: poll has no CPU for the thread that polls at fifo:80 and one for what else must run "
            "(client's sender): it may run on CPU 1 only, and one that polls leaves it to nobody");
  config.receive.reset();
  config.options = {{"transport", "shm_poll"}};
  EXPECT_EQ(refused(config).substr(0, 27), "options: transport=shm_poll");
  config.cpus = {1};
  EXPECT_EQ(refused(config).substr(0, 8), "cpus: 1 ");
}

}  // namespace
}  // namespace rtmeter
