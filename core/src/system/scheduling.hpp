// Policy and priority of threads: set, then read back. A setting that did not take throws Failure naming the
// field, the value, the limit in the way and how to raise it. Setup only.
#pragma once

#include <cstdint>
#include <string>

#include "json/json.hpp"

namespace rtmeter {

struct Scheduling {
  enum class Policy { other, fifo, rr, deadline, batch, idle, unknown } policy = Policy::other;
  int priority = 0;  // fifo, rr: 1-99
  std::int64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;  // deadline
  bool operator==(const Scheduling&) const = default;
};

std::string to_string(const Scheduling& s);  // "fifo:80", "deadline:1ms/2ms/2ms", "other"
Json to_json(const Scheduling& s);           // as in spec/probe.md
Scheduling scheduling_from_json(const Json& j, const std::string& field);  // throws Failure

void set_scheduling(int tid, const Scheduling& wanted, const std::string& field);  // tid 0: caller
Scheduling get_scheduling(int tid);
// From now on the kernel sends SIGXCPU whenever the calling thread, which has a deadline policy, has used up
// its runtime and wants more. Throws Failure.
void ask_for_overrun_signal(const std::string& field);
// Of the calling thread and of those that it creates while they have no real-time policy, which has none.
void set_timer_slack(std::int64_t slack_ns, const std::string& field);
bool read_scheduling(int tid, Scheduling& into) noexcept;  // false: errno

}  // namespace rtmeter
