// The posix adapter through its C table, as the core uses it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <time.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "posix.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_posix {

using Options = std::vector<std::pair<std::string, std::string>>;

inline std::int64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

// What a run is about; the defaults are those of the probe.
struct Asked {
  rtm_measurement measurement = RTM_TIMER;
  rtm_role role = RTM_ROLE_SINGLE;
  Options options;
  std::int32_t overrun = -1;
  std::int32_t components = -1;
  std::uint32_t payload_bytes = 500;
  rtm_reliability reliability = RTM_BEST_EFFORT;
  std::string session = "test-" + std::to_string(getpid());
};

// One start() to its stop().
class Instance {
 public:
  explicit Instance(const Asked& asked) : asked_(asked) {
    for (const auto& [key, value] : asked_.options) options_.push_back({key.c_str(), value.c_str()});
    run_.measurement = asked_.measurement;
    run_.role = asked_.role;
    run_.timer_mode = RTM_PERIODIC;
    run_.payload_bytes = asked_.payload_bytes;
    run_.reliability = asked_.reliability;
    run_.history_depth = 1;
    run_.session = asked_.session.c_str();
    run_.overrun_asked = asked_.overrun;
    run_.components_asked = asked_.components;
    run_.options = options_.data();
    run_.option_count = options_.size();
    if (table().start(&run_, &self_, &error_) != 0) self_ = nullptr;
  }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance() { stop(); }

  void stop() {
    if (self_ != nullptr) table().stop(std::exchange(self_, nullptr));
  }
  bool started() const { return self_ != nullptr; }
  const rtm_error& error() const { return error_; }

  // Null on failure, which error() then tells.
  void* node(const char* name = "node") {
    void* made = nullptr;
    return table().create_node(self_, name, &made, &error_) == 0 ? made : nullptr;
  }
  void* timer(const rtm_timer_spec& spec, rtm_timer_traits* traits) {
    void* made = nullptr;
    return table().create_timer(node(), &spec, &made, traits, &error_) == 0 ? made : nullptr;
  }
  void* publisher(void* node, const char* topic) {
    void* made = nullptr;
    return table().create_publisher(node, topic, &made, &error_) == 0 ? made : nullptr;
  }
  void* subscriber(void* node, const char* topic, rtm_on_message on_message, void* user) {
    void* made = nullptr;
    return table().create_subscriber(node, topic, on_message, user, &made, &error_) == 0 ? made : nullptr;
  }

  bool tell_stamps(void* node, rtm_on_stamp on_stamp, void* user) {
    return table().tell_stamps(node, on_stamp, user, &error_) == 0;
  }

  int arm(void* timer, std::int64_t now_ns) { return table().arm(timer, now_ns); }
  int publish(void* publisher, const rtm_message& m) { return table().publish(publisher, &m); }
  int spin(std::int64_t timeout_ns) { return table().spin(self_, timeout_ns); }
  int wait(std::int64_t timeout_ns) { return table().wait(self_, timeout_ns); }
  int spin_some() { return table().spin_some(self_); }
  void interrupt() { table().interrupt(self_); }

  // The last value of each key that describe() puts.
  std::map<std::string, std::string> described() const {
    struct MapSink : rtm_sink {
      std::map<std::string, std::string> map;
    } sink;
    sink.put = [](rtm_sink* s, const char* key, const char* value) {
      static_cast<MapSink*>(s)->map[key] = value;
    };
    table().describe(self_, &sink);
    return sink.map;
  }

 private:
  static const rtm_adapter& table() { return *rtmeter::adapter_table<Posix>(); }

  const Asked asked_;
  std::vector<rtm_option> options_;
  rtm_run run_{};
  void* self_ = nullptr;
  rtm_error error_{};
};

}  // namespace rtmeter_posix
