// A measurement on a clock that the test moves, over a middleware that the test plays: every time, every
// row and every call is exact, and no real time passes.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "log/log_writer.hpp"
#include "measure/measurement.hpp"
#include "rtmeter/adapter.hpp"
#include "sample_log_file.hpp"

namespace rtmeter::testing_help {

// Time goes on by sleeping, or as the test says.
class HandClock final : public Clock {
 public:
  explicit HandClock(bool is_scripted = false) : is_scripted_(is_scripted) {}
  std::int64_t now_ns() noexcept override { return at_ns; }
  void sleep_until_ns(std::int64_t until_ns) noexcept override {
    sleeps.push_back(until_ns);
    at_ns = std::max(at_ns, until_ns) + (late_ns.count(until_ns) != 0 ? late_ns[until_ns] : 0);
    if (on_sleep) on_sleep();
  }
  std::int64_t reach_ns(std::int64_t release_ns) noexcept override {
    if (is_scripted_ || at_ns < release_ns) sleep_until_ns(release_ns);
    return at_ns;
  }
  bool scripted() const noexcept override { return is_scripted_; }
  std::int64_t first_release_ns(std::int64_t period_ns) noexcept override { return at_ns + period_ns; }

  std::int64_t at_ns = 0;
  std::vector<std::int64_t> sleeps;              // until when
  std::map<std::int64_t, std::int64_t> late_ns;  // by how much the sleep until then ends late
  std::function<void()> on_sleep;                // as each ends

 private:
  const bool is_scripted_;
};

struct Sent {
  std::string topic;
  std::uint64_t sequence;
  std::vector<std::uint8_t> bytes;
};

// The middleware's part. What is not played fails, or does nothing.
struct Played {
  std::function<void()> spin_some, arm;
  std::function<void(std::int64_t timeout_ns)> spin, wait;
  std::function<void(const Sent&)> publish, call;
  rtm_timer_traits traits{RTM_EVERY_TICK, RTM_CATCH_UP, 0};

  rtm_timer_spec timer{};
  std::map<std::string, std::pair<rtm_on_message, void*>> subscribers;
  std::pair<rtm_on_reply, void*> client;
  std::vector<std::string> nodes;
  std::map<std::string, std::string> described;
  std::atomic<int> interrupts{0};

  void fire(std::int64_t expected_ns = RTM_ABSENT, std::int64_t actual_ns = RTM_ABSENT) const {
    const rtm_fire fire{expected_ns, actual_ns};
    timer.on_fire(timer.user, &fire);
  }
  void deliver(const std::string& topic, const Sent& sent) const {
    const rtm_message message{sent.sequence, sent.bytes.data(),
                              static_cast<std::uint32_t>(sent.bytes.size())};
    const auto& [on_message, user] = subscribers.at(topic);
    on_message(user, &message);
  }
  void answer(rtm_reply what, const Sent& sent) const {
    const rtm_message message{sent.sequence, sent.bytes.data(),
                              what == RTM_RESULT ? static_cast<std::uint32_t>(sent.bytes.size()) : 0};
    client.first(client.second, what, &message);
  }
};

inline Played*& played() {
  static Played* now = nullptr;
  return now;
}

class PlayedAdapter final : public Adapter {
 public:
  explicit PlayedAdapter(const rtm_run& /*run*/) {}
  static void describe_static(Sink& /*sink*/) {}
  void describe(Sink& sink) const {
    for (const auto& [key, value] : played()->described) sink.put(key.c_str(), value.c_str());
  }
  void* create_node(const std::string& name) override {
    played()->nodes.push_back(name);
    return this;
  }
  void* create_timer(void* /*node*/, const rtm_timer_spec& spec, rtm_timer_traits& traits) override {
    played()->timer = spec;
    traits = played()->traits;
    return this;
  }
  void* create_publisher(void* /*node*/, const std::string& topic) override { return new_topic(topic); }
  void* create_subscriber(void* /*node*/, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    played()->subscribers[topic] = {on_message, user};
    return this;
  }
  void* create_client(void* /*node*/, const std::string& service, rtm_on_reply on_reply,
                      void* user) override {
    played()->client = {on_reply, user};
    return new_topic(service);
  }
  int arm(void* /*timer*/, std::int64_t /*now_ns*/) noexcept override { return invoke(played()->arm); }
  int publish(void* publisher, const rtm_message& message) noexcept override {
    return invoke(played()->publish, sent_over(publisher, message));
  }
  int call(void* client, const rtm_message& request) override {
    return invoke(played()->call, sent_over(client, request));
  }
  int spin(std::int64_t timeout_ns) noexcept override { return invoke(played()->spin, timeout_ns); }
  int wait(std::int64_t timeout_ns) noexcept override { return invoke(played()->wait, timeout_ns); }
  int spin_some() noexcept override { return invoke(played()->spin_some); }
  void interrupt() noexcept override { ++played()->interrupts; }

 private:
  template <typename Function, typename... Arguments>
  static int invoke(const Function& function, Arguments... arguments) {
    if (!function) return -1;
    function(arguments...);
    return 0;
  }
  static Sent sent_over(void* topic, const rtm_message& message) {
    return {*static_cast<std::string*>(topic), message.sequence,
            std::vector<std::uint8_t>(message.data, message.data + message.bytes)};
  }
  std::string* new_topic(const std::string& topic) {
    topics_.push_back(std::make_unique<std::string>(topic));
    return topics_.back().get();
  }
  std::vector<std::unique_ptr<std::string>> topics_;
};

// A config of period 100 ns, to be completed.
inline Config config_by_hand(rtm_measurement measurement, std::int64_t warm_up, std::int64_t samples) {
  Config config;
  config.measurement = measurement;
  config.period_ns = 100;
  config.warm_up = warm_up;
  config.samples = samples;
  config.loss_timeout_ns = 1'000;
  config.payload_bytes = 16;
  config.connect_timeout_ns = 1'000;
  return config;
}

// One measurement's bench. The measurement's own set_up(), run() and facts() do the rest.
class ByHand {
 public:
  explicit ByHand(Config given, rtm_drive drive = RTM_SPIN, rtm_receive receive = RTM_RECEIVE_SPIN_ONCE,
                  bool is_scripted = false, std::size_t ring_rows = 1 << 16)
      : clock(is_scripted), config([&] {
          given.log = directory_ / "test.rtlog";
          return given;
        }()),
        session(*adapter_table<PlayedAdapter>(), config, drive, receive),
        log_(config.log, header_of_columns(columns_of(config))),
        recorder_(log_, columns_of(config).size(), ring_rows, WhenFull::count,
                  [this](const std::int64_t* rows, std::size_t count) {
                    const std::size_t width = columns_of(config).size();
                    for (std::size_t i = 0; i < count; ++i, rows += width)
                      rows_.emplace_back(rows, rows + width);
                  }),
        bench_{config, drive, receive, clock, session, recorder_, usage, counters, stop, watchdog} {
    played() = &middleware;
    session.start();
    measurement = make_measurement(bench_);
  }

  // What was recorded, once.
  std::vector<Row> rows() {
    if (!writes_) recorder_.start({});
    recorder_.finish();
    return rows_;
  }
  // Rows leave the ring while it runs.
  void start_writing() {
    writes_ = true;
    recorder_.start({});
  }
  std::uint64_t overflow() const { return recorder_.overflow(); }
  std::vector<Row> run() {
    measurement->set_up();
    clock.at_ns = 0;  // whatever that took
    measurement->run();
    return rows();
  }
  std::string fact(const char* key) const { return measurement->facts().find(key)->dump(); }

 private:
  const TemporaryDirectory directory_;

 public:
  Played middleware;
  HandClock clock;
  const Config config;
  Session session;
  UsageWindow usage;
  Counters counters;
  std::atomic<bool> stop{false};
  Watchdog watchdog{INT64_MAX};
  std::unique_ptr<Measurement> measurement;

 private:
  LogWriter log_;
  std::vector<Row> rows_;
  Recorder recorder_;
  bool writes_ = false;
  Bench bench_;
};

// Sanitizers would fault on pages of their own beside.
[[gnu::no_sanitize("address", "thread")]] inline void write_to(volatile char* byte) { *byte = 1; }

}  // namespace rtmeter::testing_help
