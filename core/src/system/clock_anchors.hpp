// The system's clocks, at one moment.
#pragma once

#include "json/json.hpp"

namespace rtmeter {

// CLOCK_MONOTONIC, _RAW, BOOTTIME and REALTIME read together.
Json clock_anchors();

}  // namespace rtmeter
