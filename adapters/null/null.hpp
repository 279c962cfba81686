// The null adapter and the clock it runs on.
#pragma once

#include "rtmeter/adapter.h"
#include "rtmeter/clock.hpp"

namespace rtmeter::null {

const rtm_adapter& adapter();
Clock& clock();

}  // namespace rtmeter::null
