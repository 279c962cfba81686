// CPUs of threads: set, then read back. A setting that did not take throws Failure, as in scheduling.hpp.
#pragma once

#include <sched.h>

#include <array>
#include <string>
#include <vector>

namespace rtmeter {

// CPU that does not exist: Failure
void set_affinity(int tid, const std::vector<int>& cpus, const std::string& field = "cpus");
std::vector<int> get_affinity(int tid);
// Room for 8192 CPUs: the kernel refuses to fill a mask shorter than its own.
using CpuMask = std::array<cpu_set_t, 8>;
CpuMask mask_of(const std::vector<int>& cpus);
std::vector<int> cpus_in(const CpuMask& mask);

}  // namespace rtmeter
