// Where a loop's writer runs: on none of the CPUs that loops are kept to.
#pragma once

#include <vector>

namespace rtmeter {

// Puts the writer on the CPUs that are online and neither isolated nor the measured threads', if those are
// kept to some; on isolated ones if no others are left; else leaves it where it is.
void keep_off(int writer_tid, const std::vector<int>& measured_tids) noexcept;

}  // namespace rtmeter
