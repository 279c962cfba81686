// What a sample log begins with (spec/sample-log.md).
#pragma once

#include "json/json.hpp"
#include "measure/config.hpp"

namespace rtmeter {

// adapter: what it says of itself before the start. scripted: the clock is.
Json log_header(const Config& config, const Json& adapter, bool scripted);

}  // namespace rtmeter
