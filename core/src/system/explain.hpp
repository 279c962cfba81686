// Why a setting did not take: the limit in the way, its present value, and what raises it.
#pragma once

#include <string>
#include <vector>

#include "errors.hpp"
#include "system/scheduling.hpp"

namespace rtmeter {

// `call` failed with `error` (errno) for no reason that has an explanation of its own.
Failure system_failure(const std::string& field, const std::string& value, const std::string& call,
                       int error);

// sched_setattr failed with `error`.
Failure explain_scheduling(int tid, const Scheduling& wanted, const std::string& field, int error);

// sched_setaffinity failed with `error`, or (0) left only `got`.
Failure explain_affinity(int tid, const std::vector<int>& wanted, const std::string& field, int error,
                         const std::vector<int>& got);

}  // namespace rtmeter
