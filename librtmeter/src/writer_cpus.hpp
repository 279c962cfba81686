// Where a loop's writer runs: on none of the CPUs that loops are kept to.
#pragma once

#include <string>
#include <vector>

namespace rtmeter {

// The CPUs of a list such as "0-3,8".
std::vector<int> cpus_of_list(const std::string& list);

// Puts the writer on the CPUs that are online and neither isolated nor the measured threads', if those are
// kept to some; on isolated ones if no others are left; else leaves it where it is.
void keep_off(int writer_tid, const std::vector<int>& measured_tids) noexcept;

}  // namespace rtmeter
