// A probe with a clock of its own: only the null adapter needs it. Others call rtm_probe_main().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rtmeter/adapter.h"
#include "rtmeter/clock.hpp"

namespace rtmeter {

// Like rtm_probe_main(), on `clock` instead of CLOCK_MONOTONIC.
int probe_main(int argc, char** argv, const rtm_adapter& adapter, Clock& clock);

}  // namespace rtmeter
