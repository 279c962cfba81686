// The threads of this process, as they really run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json/json.hpp"
#include "system/affinity.hpp"
#include "system/scheduling.hpp"

namespace rtmeter {

std::optional<std::int64_t> get_timer_slack_ns(int tid);  // nullopt if it cannot be read

struct ThreadFacts {
  int tid = 0;
  std::string name;
  std::string role;  // measured, service, middleware
  bool stamps = false;  // messages
  Scheduling scheduling;
  std::vector<int> cpus;
  std::optional<std::int64_t> timer_slack_ns;
};

bool thread_exists(int tid);  // of this process

// Every thread of this process, by tid. Threads that end while it looks are left out.
// measured and service tell the roles; all others are the middleware's.
std::vector<ThreadFacts> audit_threads(const std::vector<int>& measured, const std::vector<int>& service);
Json to_json(const std::vector<ThreadFacts>& threads);

// Gives the middleware's threads a policy, and CPUs if there are any. One that has ended since is passed
// over; else throws Failure naming `child_threads` or `child_cpus`.
void set_threads(const std::vector<ThreadFacts>& threads, const std::optional<Scheduling>& scheduling,
                 const std::vector<int>& cpus);

// Those that were seen after, and those seen before that have ended since, by tid.
std::vector<ThreadFacts> with_ended(const std::vector<ThreadFacts>& before, std::vector<ThreadFacts> after);

// The threads with those marked that stamp, and with those stampers that have ended since: an executor's end
// with its spin.
std::vector<ThreadFacts> with_stampers(std::vector<ThreadFacts> threads, const std::vector<int>& stamping,
                                       std::vector<ThreadFacts> stampers, const std::vector<int>& measured);

// What a thread reads of itself while it is there, without memory of its own: three system calls, and one for
// the slack.
class SelfPortrait {
 public:
  bool take() noexcept;  // of the calling thread; false if the kernel refuses
  ThreadFacts facts() const;  // role: middleware

 private:
  int tid_ = 0;
  char name_[16] = {};
  Scheduling scheduling_;
  CpuMask affinity_ = {};
  std::int64_t timer_slack_ns_ = -1;
};

}  // namespace rtmeter
