// A thread of real-time priority that polls leaves its CPU to nobody.
#pragma once

#include <vector>

#include "json/json.hpp"
#include "measure/config.hpp"

namespace rtmeter {

// The CPUs that the process may run on, and whether the kernel leaves others a share of those that real-time
// threads take.
struct CpuShare {
  std::vector<int> allowed;
  bool throttled = true;
};
CpuShare cpu_share();

// Failure if the thread that polls would keep from running what the run cannot do without: the sender,
// threads of the middleware's, or, without throttling, rtmeter's own. The front's rule (docs/conditions.md),
// for a probe that is started by hand; of its peer it knows nothing.
void check_polling(const Json& description, const Config& config, rtm_drive drive, rtm_receive receive,
                   const CpuShare& share);

}  // namespace rtmeter
