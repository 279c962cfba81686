// Scheduling policies through sched_setattr(2), whose structure and calls the C library does not have.
#include "system/scheduling.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "errors.hpp"
#include "system/explain.hpp"

namespace rtmeter {
namespace {

using Policy = Scheduling::Policy;

// struct sched_attr of <linux/sched/types.h>, first version.
struct SchedAttr {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime_ns, deadline_ns, period_ns;
};
static_assert(sizeof(SchedAttr) == 48);

constexpr std::uint64_t kResetOnFork = 1, kDeadlineOverrun = 4;

constexpr std::pair<const char*, Policy> kNames[] = {
    {"other", Policy::other},       {"fifo", Policy::fifo},   {"rr", Policy::rr},
    {"deadline", Policy::deadline}, {"batch", Policy::batch}, {"idle", Policy::idle},
    {"unknown", Policy::unknown}};
constexpr std::pair<unsigned, Policy> kNumbers[] = {
    {SCHED_OTHER, Policy::other},       {SCHED_FIFO, Policy::fifo},   {SCHED_RR, Policy::rr},
    {SCHED_DEADLINE, Policy::deadline}, {SCHED_BATCH, Policy::batch}, {SCHED_IDLE, Policy::idle}};

std::string name_of(Policy policy) {
  for (const auto& [name, known] : kNames) {
    if (known == policy) return name;
  }
  return "unknown";
}

unsigned number_of(Policy policy) {
  for (const auto& [number, known] : kNumbers) {
    if (known == policy) return number;
  }
  return SCHED_OTHER;
}

Policy policy_of(unsigned number) noexcept {
  for (const auto& [known, policy] : kNumbers) {
    if (known == number) return policy;
  }
  return Policy::unknown;
}

bool has_priority(Policy policy) { return policy == Policy::fifo || policy == Policy::rr; }

std::string duration_text(std::int64_t ns) {
  for (const auto& [unit_ns, unit] : {std::pair{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}}) {
    if (ns != 0 && ns % unit_ns == 0) return std::to_string(ns / unit_ns) + unit;
  }
  return std::to_string(ns) + "ns";
}

std::int64_t required_int(const Json& j, const char* key, const std::string& field) {
  const Json* value = j.find(key);
  if (value == nullptr || !value->is_int()) {
    throw Failure(
        field, j.dump(), std::string("this policy needs the whole number \"") + key + "\"",
        R"(e.g. {"policy": "fifo", "priority": 80} or )"
        R"({"policy": "deadline", "runtime_ns": 200000, "deadline_ns": 1000000, "period_ns": 1000000})");
  }
  return value->as_int();
}

void check_keys(const Json& j, const Scheduling& s, const std::string& field) {
  for (const auto& [key, value] : j.as_object()) {
    const bool known =
        key == "policy" || (has_priority(s.policy) && key == "priority") ||
        (s.policy == Policy::deadline && (key == "runtime_ns" || key == "deadline_ns" || key == "period_ns"));
    if (!known) {
      throw Failure(field, j.dump(), "the policy " + name_of(s.policy) + " has no \"" + key + "\"",
                    "leave \"" + key + "\" out");
    }
  }
}

void check_ranges(const Scheduling& s, const std::string& field) {
  if (has_priority(s.policy) && (s.priority < 1 || s.priority > 99)) {
    throw Failure(field, to_string(s), "a real-time priority lies between 1 and 99", "choose one of 1 to 99");
  }
  if (s.policy == Policy::deadline &&
      !(0 < s.runtime_ns && s.runtime_ns <= s.deadline_ns && s.deadline_ns <= s.period_ns)) {
    throw Failure(field, to_string(s), "a deadline policy needs 0 < runtime <= deadline <= period",
                  "e.g. deadline:200us/1ms/1ms");
  }
}

}  // namespace

std::string to_string(const Scheduling& s) {
  std::string text = name_of(s.policy);
  if (has_priority(s.policy)) text += ":" + std::to_string(s.priority);
  if (s.policy == Policy::deadline) {
    text += ":" + duration_text(s.runtime_ns) + "/" + duration_text(s.deadline_ns) + "/" +
            duration_text(s.period_ns);
  }
  return text;
}

Json to_json(const Scheduling& s) {
  Json j = Json::object();
  j["policy"] = name_of(s.policy);
  if (has_priority(s.policy)) j["priority"] = s.priority;
  if (s.policy == Policy::deadline) {
    j["runtime_ns"] = s.runtime_ns;
    j["deadline_ns"] = s.deadline_ns;
    j["period_ns"] = s.period_ns;
  }
  return j;
}

Scheduling scheduling_from_json(const Json& j, const std::string& field) {
  const Json* policy = j.find("policy");
  Scheduling s;
  s.policy = Policy::unknown;
  if (policy != nullptr && policy->is_string()) {
    for (const Policy offered : {Policy::other, Policy::fifo, Policy::rr, Policy::deadline}) {
      if (policy->as_string() == name_of(offered)) s.policy = offered;
    }
  }
  if (s.policy == Policy::unknown) {
    throw Failure(field, j.dump(), "there is no such scheduling policy",
                  "choose other, fifo, rr or deadline");
  }
  check_keys(j, s, field);
  if (has_priority(s.policy)) {
    const std::int64_t priority = required_int(j, "priority", field);
    s.priority = priority < 1 || priority > 99 ? 0 : static_cast<int>(priority);
    if (s.priority == 0) {
      throw Failure(field, name_of(s.policy) + ":" + std::to_string(priority),
                    "a real-time priority lies between 1 and 99", "choose one of 1 to 99");
    }
  }
  if (s.policy == Policy::deadline) {
    s.runtime_ns = required_int(j, "runtime_ns", field);
    s.deadline_ns = required_int(j, "deadline_ns", field);
    s.period_ns = required_int(j, "period_ns", field);
  }
  check_ranges(s, field);
  return s;
}

void set_scheduling(int tid, const Scheduling& wanted, const std::string& field) {
  check_ranges(wanted, field);
  SchedAttr attr{};
  attr.size = sizeof attr;
  attr.policy = number_of(wanted.policy);
  attr.priority = static_cast<std::uint32_t>(wanted.priority);
  if (wanted.policy == Policy::deadline) {
    attr.flags = kResetOnFork;  // the kernel lets a deadline thread start others only this way
    attr.runtime_ns = static_cast<std::uint64_t>(wanted.runtime_ns);
    attr.deadline_ns = static_cast<std::uint64_t>(wanted.deadline_ns);
    attr.period_ns = static_cast<std::uint64_t>(wanted.period_ns);
  } else {
    attr.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(tid));  // keep it
  }
  if (syscall(SYS_sched_setattr, tid, &attr, 0U) != 0) throw explain_scheduling(tid, wanted, field, errno);
  const Scheduling got = get_scheduling(tid);
  if (got != wanted) {
    throw Failure(field, to_string(wanted), "the kernel accepted it but reports " + to_string(got),
                  "report this with `uname -a`: the setting did not take");
  }
}

void ask_for_overrun_signal(const std::string& field) {
  SchedAttr attr{}, now{};
  const bool asked = syscall(SYS_sched_getattr, 0, &attr, static_cast<unsigned>(sizeof attr), 0U) == 0 &&
                     (attr.flags |= kDeadlineOverrun, syscall(SYS_sched_setattr, 0, &attr, 0U) == 0) &&
                     syscall(SYS_sched_getattr, 0, &now, static_cast<unsigned>(sizeof now), 0U) == 0;
  if (asked && (now.flags & kDeadlineOverrun) != 0) return;
  throw Failure(field, to_string(get_scheduling(0)),
                asked ? "the kernel does not take the flag SCHED_FLAG_DL_OVERRUN" : std::strerror(errno),
                "a kernel of 4.16 or newer signals overruns; use another policy on this one");
}

void set_timer_slack(std::int64_t slack_ns, const std::string& field) {
  prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_ns));
  const int got = prctl(PR_GET_TIMERSLACK);
  if (got != slack_ns)
    throw Failure(field, std::to_string(slack_ns), "the kernel reports " + std::to_string(got),
                  "leave it out: the setting did not take");
}

bool read_scheduling(int tid, Scheduling& into) noexcept {
  SchedAttr attr{};
  if (syscall(SYS_sched_getattr, tid, &attr, static_cast<unsigned>(sizeof attr), 0U) != 0) return false;
  into = Scheduling{};
  into.policy = policy_of(attr.policy);
  into.priority = static_cast<int>(attr.priority);
  if (into.policy == Policy::deadline) {
    into.runtime_ns = static_cast<std::int64_t>(attr.runtime_ns);
    into.deadline_ns = static_cast<std::int64_t>(attr.deadline_ns);
    into.period_ns = static_cast<std::int64_t>(attr.period_ns);
  }
  return true;
}

Scheduling get_scheduling(int tid) {
  Scheduling s;
  if (!read_scheduling(tid, s))
    throw system_failure("scheduling", "thread " + std::to_string(tid), "sched_getattr", errno);
  return s;
}

}  // namespace rtmeter
