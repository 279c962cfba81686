// Whether the threads run as the run was asked to.
#pragma once

#include <vector>

#include "measure/config.hpp"
#include "system/audit.hpp"

namespace rtmeter {

// A setting that did not take, or that the middleware took back, is an error: Failure. A thread of the
// middleware's that stamps is judged by the same, unless it was asked to run otherwise: after_init leaves it
// normal.
void check_threads(const std::vector<ThreadFacts>& threads, const Config& config);

}  // namespace rtmeter
