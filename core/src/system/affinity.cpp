// CPU affinity of threads.
#include "system/affinity.hpp"

#include <algorithm>
#include <cerrno>

#include "system/explain.hpp"
#include "system/limits.hpp"
#include "system/scheduling.hpp"

namespace rtmeter {
namespace {

constexpr int kMaxCpus = 8 * CPU_SETSIZE;

std::string group_cpus_file(const ControlGroup& group) {
  return group.directory + (group.version == 1 ? "/cpuset.effective_cpus" : "/cpuset.cpus.effective");
}

bool contains(const std::vector<int>& cpus, int cpu) {
  return std::find(cpus.begin(), cpus.end(), cpu) != cpus.end();
}

void check_exist(const std::vector<int>& cpus, const std::string& field) {
  if (cpus.empty()) {
    throw Failure(field, "", "no CPU is given", "name at least one of " + cpu_list_text(online_cpus()));
  }
  const auto online = online_cpus(), possible = possible_cpus();
  for (const int cpu : cpus) {
    if (contains(online, cpu)) continue;
    const std::string name = "CPU " + std::to_string(cpu);
    if (contains(possible, cpu) &&
        read_text("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/online")) {
      throw Failure(field, cpu_list_text(cpus), name + " is offline; online are " + cpu_list_text(online),
                    "`echo 1 | sudo tee /sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/online`");
    }
    throw Failure(field, cpu_list_text(cpus),
                  name + " does not exist; this machine has " + cpu_list_text(online),
                  "choose among " + cpu_list_text(online));
  }
}

}  // namespace

Failure explain_affinity(int tid, const std::vector<int>& wanted, const std::string& field, int error,
                         const std::vector<int>& got) {
  const std::string value = cpu_list_text(wanted);
  if (const auto group = control_group(tid, "cpuset")) {
    const std::string file = group_cpus_file(*group);
    const auto allowed_text = read_text(file);
    const auto allowed = parse_cpu_list(allowed_text.value_or(""));
    const auto outside =
        std::find_if(wanted.begin(), wanted.end(), [&](int cpu) { return !contains(allowed, cpu); });
    if (!allowed.empty() && outside != wanted.end()) {
      return Failure(field, value,
                     "CPU " + std::to_string(*outside) + " is outside the process's cpuset " + group->name +
                         ": " + file + " is " + *allowed_text,
                     "choose among " + *allowed_text +
                         ", or widen the cpuset (in a container `docker run "
                         "--cpuset-cpus=" +
                         value +
                         "`; systemd: AllowedCPUs=; else cpuset.cpus of the group and its "
                         "parents)");
    }
  }
  if (error == EBUSY && get_scheduling(tid).policy == Scheduling::Policy::deadline) {
    return Failure(
        field, value, "a SCHED_DEADLINE thread may not be confined to CPUs",
        "leave `" + field + "` out, or choose fifo:P, or confine the process by an exclusive cpuset");
  }
  if (error != 0) return system_failure(field, value, "sched_setaffinity", error);
  return Failure(
      field, value, "the kernel accepted it but reports CPUs " + cpu_list_text(got),
      "the other CPUs are taken from this process (cpuset, isolation or hot-unplug): choose among these");
}

void set_affinity(int tid, const std::vector<int>& cpus, const std::string& field) {
  check_exist(cpus, field);
  std::vector<int> wanted = cpus;
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  const CpuMask mask = mask_of(wanted);
  if (sched_setaffinity(tid, sizeof mask, mask.data()) != 0)
    throw explain_affinity(tid, wanted, field, errno, {});
  const auto got = get_affinity(tid);
  if (got != wanted) throw explain_affinity(tid, wanted, field, 0, got);
}

CpuMask mask_of(const std::vector<int>& cpus) {
  CpuMask mask{};
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), sizeof mask, mask.data());
  return mask;
}

std::vector<int> get_affinity(int tid) {
  CpuMask mask{};
  if (sched_getaffinity(tid, sizeof mask, mask.data()) != 0) {
    throw system_failure("cpus", "thread " + std::to_string(tid), "sched_getaffinity", errno);
  }
  return cpus_in(mask);
}

std::vector<int> cpus_in(const CpuMask& mask) {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (CPU_ISSET_S(static_cast<std::size_t>(cpu), sizeof mask, mask.data())) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace rtmeter
