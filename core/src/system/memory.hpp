// Memory that is there before it is measured with: locked and faulted in. Throws Failure, as in
// scheduling.hpp.
#pragma once

#include <cstdint>

namespace rtmeter {

void lock_memory();  // mlockall(MCL_CURRENT | MCL_FUTURE), verified by VmLck
void prefault_stack(std::int64_t bytes);
// All threads allocate from one heap (M_ARENA_MAX), so that prefault_heap() reaches each of them: before the
// first thread allocates.
void share_one_heap();
void prefault_heap(std::int64_t bytes);  // also keeps the heap: M_TRIM_THRESHOLD, M_MMAP_MAX

}  // namespace rtmeter
