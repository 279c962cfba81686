// What every thread of the process runs as.
#include "system/audit.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>

#include "errors.hpp"
#include "system/affinity.hpp"
#include "system/limits.hpp"
#include "system/scheduling.hpp"

namespace rtmeter {
namespace {

bool contains(const std::vector<int>& tids, int tid) {
  return std::find(tids.begin(), tids.end(), tid) != tids.end();
}

std::vector<int> thread_ids() {
  std::error_code error;
  const std::filesystem::directory_iterator entries("/proc/self/task", error);
  if (error)
    throw Failure("threads", "/proc/self/task", error.message(),
                  error == std::errc::too_many_files_open ? "raise the limit of open files (ulimit -n)"
                                                          : "mount /proc");
  std::vector<int> tids;
  for (const auto& entry : entries) {
    tids.push_back(std::stoi(entry.path().filename().string()));
  }
  std::sort(tids.begin(), tids.end());
  return tids;
}

}  // namespace

std::optional<std::int64_t> get_timer_slack_ns(int tid) {
  const auto text = read_text(proc_of(tid) + "/timerslack_ns");
  std::int64_t slack_ns = 0;
  if (text && std::from_chars(text->data(), text->data() + text->size(), slack_ns).ec == std::errc{})
    return slack_ns;
  // Another thread's slack needs CAP_SYS_NICE; one's own does not.
  if (tid != 0 && tid != gettid()) return std::nullopt;
  const int own_ns = prctl(PR_GET_TIMERSLACK);
  return own_ns < 0 ? std::nullopt : std::optional<std::int64_t>(own_ns);
}

bool thread_exists(int tid) { return access(("/proc/self/task/" + std::to_string(tid)).c_str(), F_OK) == 0; }

void set_threads(const std::vector<ThreadFacts>& threads, const std::optional<Scheduling>& scheduling,
                 const std::vector<int>& cpus) {
  for (const ThreadFacts& t : threads) {
    if (t.role != "middleware") continue;
    try {
      if (scheduling) set_scheduling(t.tid, *scheduling, "child_threads");
      if (!cpus.empty()) set_affinity(t.tid, cpus, "child_cpus");
    } catch (const Failure&) {
      if (thread_exists(t.tid)) throw;
    }
  }
}

std::vector<ThreadFacts> audit_threads(const std::vector<int>& measured, const std::vector<int>& service) {
  std::vector<ThreadFacts> threads;
  for (const int tid : thread_ids()) {
    try {
      ThreadFacts facts;
      facts.tid = tid;
      facts.name = read_text("/proc/self/task/" + std::to_string(tid) + "/comm").value_or("");
      facts.role = contains(measured, tid) ? "measured" : contains(service, tid) ? "service" : "middleware";
      facts.scheduling = get_scheduling(tid);
      facts.cpus = get_affinity(tid);
      facts.timer_slack_ns = get_timer_slack_ns(tid);
      threads.push_back(std::move(facts));
    } catch (const Failure&) {
      if (thread_exists(tid)) throw;  // else it ended while we looked
    }
  }
  return threads;
}

std::vector<ThreadFacts> with_ended(const std::vector<ThreadFacts>& before, std::vector<ThreadFacts> after) {
  for (const ThreadFacts& t : before)
    if (std::none_of(after.begin(), after.end(), [&](const ThreadFacts& a) { return a.tid == t.tid; }))
      after.push_back(t);
  std::sort(after.begin(), after.end(), [](const auto& a, const auto& b) { return a.tid < b.tid; });
  return after;
}

std::vector<ThreadFacts> with_stampers(std::vector<ThreadFacts> threads, const std::vector<int>& stamping,
                                       std::vector<ThreadFacts> stampers, const std::vector<int>& measured) {
  for (ThreadFacts& t : threads) t.stamps = contains(stamping, t.tid);
  for (ThreadFacts& t : stampers)
    if (contains(measured, t.tid)) t.role = "measured";
  return with_ended(stampers, std::move(threads));
}

bool SelfPortrait::take() noexcept {
  tid_ = gettid();
  const int slack_ns = prctl(PR_GET_TIMERSLACK);
  timer_slack_ns_ = slack_ns < 0 ? -1 : slack_ns;
  return prctl(PR_GET_NAME, name_) == 0 && read_scheduling(0, scheduling_) &&
         sched_getaffinity(0, sizeof affinity_, affinity_.data()) == 0;
}

ThreadFacts SelfPortrait::facts() const {
  ThreadFacts facts;
  facts.tid = tid_;
  facts.name = name_;
  facts.role = "middleware";
  facts.scheduling = scheduling_;
  facts.cpus = cpus_in(affinity_);
  if (timer_slack_ns_ >= 0) facts.timer_slack_ns = timer_slack_ns_;
  return facts;
}

Json to_json(const std::vector<ThreadFacts>& threads) {
  Json list = Json::array();
  for (const ThreadFacts& facts : threads) {
    Json j = Json::object();
    j["tid"] = facts.tid;
    j["name"] = facts.name;
    j["role"] = facts.role;
    j["stamps"] = facts.stamps;
    j["policy"] = Json();
    j["priority"] = facts.scheduling.priority;
    const Json scheduling = to_json(facts.scheduling);
    for (const auto& [key, value] : scheduling.as_object()) j[key] = value;
    Json cpus = Json::array();
    for (const int cpu : facts.cpus) cpus.push(cpu);
    j["cpus"] = cpus;
    j["timer_slack_ns"] = facts.timer_slack_ns ? Json(*facts.timer_slack_ns) : Json();
    list.push(j);
  }
  return list;
}

}  // namespace rtmeter
