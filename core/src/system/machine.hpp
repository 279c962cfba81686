// The machine that is measured on.
#pragma once

#include "json/json.hpp"

namespace rtmeter {

// hostname, kernel, … (spec/probe.md, `machine`)
Json machine_facts();

}  // namespace rtmeter
