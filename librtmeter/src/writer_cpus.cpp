#include "writer_cpus.hpp"

#include <sched.h>

#include <algorithm>

#include "system/affinity.hpp"
#include "system/limits.hpp"

namespace rtmeter {
namespace {

std::vector<int> without(std::vector<int> cpus, const std::vector<int>& taken) {
  std::erase_if(cpus, [&](int cpu) { return std::find(taken.begin(), taken.end(), cpu) != taken.end(); });
  return cpus;
}

}  // namespace

void keep_off(int writer_tid, const std::vector<int>& measured_tids) noexcept {
  try {
    const auto online = online_cpus();
    const auto isolated = parse_cpu_list(read_text("/sys/devices/system/cpu/isolated").value_or(""));
    std::vector<int> measured;
    for (const int tid : measured_tids)
      for (const int cpu : get_affinity(tid)) measured.push_back(cpu);
    for (const auto& others : {without(online, isolated), online}) {
      const auto left = without(others, measured);
      if (left.empty()) continue;
      const CpuMask mask = mask_of(left);
      if (sched_setaffinity(writer_tid, sizeof mask, mask.data()) == 0) return;
    }
  } catch (const std::exception&) {  // a thread that has ended, a /sys that is not there
  }
}

}  // namespace rtmeter
