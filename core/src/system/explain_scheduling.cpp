// The kernel's rules are those of kernel/sched/syscalls.c; sched(7) and
// Documentation/scheduler/sched-deadline.rst describe them.
#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "system/affinity.hpp"
#include "system/explain.hpp"
#include "system/limits.hpp"

namespace rtmeter {
namespace {

using Policy = Scheduling::Policy;

const char* const kGiveCapability =
    "give the capability (`sudo setcap cap_sys_nice+ep PROBE`, in a container `docker run --cap-add SYS_NICE`) "
    "or run as root";

std::string sysctl(const std::string& name) {
  return read_text("/proc/sys/kernel/" + name).value_or("unreadable");
}

// A control group that has no real-time time for its members, if the thread is in one.
std::optional<Failure> explain_group(int tid, const Scheduling& wanted, const std::string& field) {
  const auto group = control_group(tid, "cpu");
  if (!group || group->name == "/") return std::nullopt;
  const std::string to_root = "move the process to the root group: `echo " + std::to_string(getpid()) +
                              " | sudo tee " + group->mount +
                              (group->version == 1 ? "/tasks" : "/cgroup.procs") + "`";
  if (group->version == 1) {
    const std::string file = group->directory + "/cpu.rt_runtime_us";
    const auto runtime_us = read_text(file);
    if (!runtime_us || *runtime_us != "0") return std::nullopt;
    return Failure(
        field, to_string(wanted),
        "the process's control group " + group->name + " has no real-time time: " + file + " is 0",
        "give it some, its parent groups first: `echo 500000 | sudo tee " + file + "`; or " + to_root);
  }
  if (!read_text(group->directory + "/cpu.max")) return std::nullopt;
  return Failure(field, to_string(wanted),
                 "the process is in the control group " + group->name +
                     " of the cpu controller (version 2), and this kernel (CONFIG_RT_GROUP_SCHED) gives "
                     "real-time time to the root group only",
                 to_root);
}

Failure explain_fifo(int tid, const Scheduling& wanted, const std::string& field) {
  const auto limit = resource_limit(RLIMIT_RTPRIO);
  if (!has_capability(CAP_SYS_NICE) && limit && *limit < static_cast<std::uint64_t>(wanted.priority)) {
    return Failure(field, to_string(wanted),
                   "no permission: RLIMIT_RTPRIO is " + limit_text(limit) + ", below the priority " +
                       std::to_string(wanted.priority) + ", and the process lacks CAP_SYS_NICE",
                   "raise the limit to 99: `sudo prlimit --pid $$ --rtprio=99` in this shell, or for good "
                   "`@realtime - rtprio 99` in /etc/security/limits.conf and a new login (in a container "
                   "`docker run --ulimit rtprio=99`); or " +
                       std::string(kGiveCapability));
  }
  if (auto failure = explain_group(tid, wanted, field)) return *failure;
  return system_failure(field, to_string(wanted), "sched_setattr", EPERM);
}

Failure explain_deadline(int tid, const Scheduling& wanted, const std::string& field) {
  if (!has_capability(CAP_SYS_NICE)) {
    return Failure(field, to_string(wanted),
                   "no permission: SCHED_DEADLINE needs CAP_SYS_NICE (no limit grants it)", kGiveCapability);
  }
  if (sysctl("sched_rt_runtime_us") == "0") {
    return Failure(field, to_string(wanted), "kernel.sched_rt_runtime_us is 0: no time for real-time threads",
                   "`sudo sysctl kernel.sched_rt_runtime_us=950000`");
  }
  const auto affinity = get_affinity(tid), online = online_cpus();
  if (!std::includes(affinity.begin(), affinity.end(), online.begin(), online.end())) {
    return Failure(
        field, to_string(wanted),
        "a SCHED_DEADLINE thread may not be confined to CPUs: it is on " + cpu_list_text(affinity) + " of " +
            cpu_list_text(online),
        "leave `cpus` out, or confine it by an exclusive cpuset instead (cpuset.cpus.partition, "
        "`man 7 cpuset`), or switch admission control off: `sudo sysctl kernel.sched_rt_runtime_us=-1`");
  }
  return system_failure(field, to_string(wanted), "sched_setattr", EPERM);
}

Failure explain_admission(const Scheduling& wanted, const std::string& field) {
  char share[32];
  const double wanted_share = static_cast<double>(wanted.runtime_ns) / static_cast<double>(wanted.period_ns);
  std::snprintf(share, sizeof share, "%.1f %%", 100 * wanted_share);
  return Failure(field, to_string(wanted),
                 "admission control: its " + std::string(share) +
                     " of a CPU do not fit beside the other deadline threads; they may use " +
                     sysctl("sched_rt_runtime_us") + " us of every " + sysctl("sched_rt_period_us") +
                     " us (kernel.sched_rt_runtime_us, kernel.sched_rt_period_us) of each of the CPUs " +
                     cpu_list_text(online_cpus()),
                 "ask for a smaller runtime or a longer period, end other deadline threads "
                 "(`ps -eLo cls,pid,comm | grep DLN`), or switch admission control off: "
                 "`sudo sysctl kernel.sched_rt_runtime_us=-1`");
}

Failure explain_invalid(const Scheduling& wanted, const std::string& field) {
  if (wanted.policy != Policy::deadline) {
    return system_failure(field, to_string(wanted), "sched_setattr", EINVAL);
  }
  return Failure(
      field, to_string(wanted),
      "the kernel takes deadline policies with a runtime of at least 1024 ns and a period between " +
          sysctl("sched_deadline_period_min_us") + " and " + sysctl("sched_deadline_period_max_us") + " us",
      "choose a period in this range, or widen it: `sudo sysctl kernel.sched_deadline_period_min_us=…`");
}

}  // namespace

Failure system_failure(const std::string& field, const std::string& value, const std::string& call,
                       int error) {
  const std::string seccomp = status_value("/proc/self/status", "Seccomp").value_or("0");
  return Failure(
      field, value, call + " failed: " + std::strerror(error) + " (errno " + std::to_string(error) + ")",
      seccomp == "0" ? "see `man 2 " + call + "`"
                     : "the process runs under a seccomp filter, which may refuse the call: allow " + call +
                           " there (in a container `--security-opt seccomp=…`)");
}

Failure explain_scheduling(int tid, const Scheduling& wanted, const std::string& field, int error) {
  if (error == EPERM && wanted.policy == Policy::deadline) return explain_deadline(tid, wanted, field);
  if (error == EPERM) return explain_fifo(tid, wanted, field);
  if (error == EBUSY) return explain_admission(wanted, field);
  if (error == EINVAL) return explain_invalid(wanted, field);
  return system_failure(field, to_string(wanted), "sched_setattr", error);
}

}  // namespace rtmeter
