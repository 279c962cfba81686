// Round trips over a line whose delays the test says.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "by_hand.hpp"

namespace rtmeter::testing_help {

using Rows = std::vector<Row>;

inline constexpr std::int64_t kNever = -1;

// Releases at 100, 200, …; every message takes 30, or what delay_ns says of its sequence number.
class Line : public ByHand {
 public:
  explicit Line(const Config& given, rtm_drive drive = RTM_SPIN, rtm_receive receive = RTM_RECEIVE_SPIN_ONCE,
                bool is_scripted = false)
      : ByHand(given, drive, receive, is_scripted) {
    middleware.publish = [this](const Sent& sent) { publish(sent); };
    middleware.wait = [this](std::int64_t timeout_ns) { wait(timeout_ns); };
    clock.on_sleep = [this] {
      deliver_until(clock.at_ns);
      if (clock.at_ns >= stop_at_ns) stop = true;
    };
  }

  std::map<std::int64_t, std::int64_t> delay_ns;
  std::multimap<std::int64_t, Sent> under_way;  // by when they come
  std::int64_t stop_at_ns = INT64_MAX;

 private:
  void publish(const Sent& sent) {
    const auto k = static_cast<std::int64_t>(sent.sequence);
    const auto found = delay_ns.find(k);
    const std::int64_t delay = k < 0 ? 0 : found == delay_ns.end() ? 30 : found->second;
    if (k < 0 || delay == 0) return deliver(sent);
    if (delay != kNever) under_way.emplace(clock.at_ns + delay, sent);
  }
  void wait(std::int64_t timeout_ns) {
    ASSERT_GT(timeout_ns, 0);
    const std::int64_t until_ns = clock.at_ns + timeout_ns;
    if (under_way.empty() || under_way.begin()->first > until_ns) {
      clock.at_ns = until_ns;
    } else {
      clock.at_ns = std::max(clock.at_ns, under_way.begin()->first);
      deliver_until(clock.at_ns);
    }
  }
  void deliver_until(std::int64_t until_ns) {
    while (!under_way.empty() && under_way.begin()->first <= until_ns) {
      const auto [at_ns, sent] = *under_way.begin();
      under_way.erase(under_way.begin());
      clock.at_ns = at_ns;
      deliver(sent);
    }
    clock.at_ns = until_ns;
  }
  void deliver(const Sent& sent) { middleware.deliver(sent.topic == "ping" ? "pong" : sent.topic, sent); }
};

inline Config round_trips(InFlight in_flight, std::int64_t samples, std::optional<rtm_overrun> overrun = {}) {
  Config config = config_by_hand(RTM_ROUNDTRIP, 1, samples);
  config.role = RTM_ROLE_CLIENT;
  config.in_flight = in_flight;
  config.overrun = overrun;
  return config;
}

}  // namespace rtmeter::testing_help
