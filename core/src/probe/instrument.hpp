// What the instrument itself costs, measured in this process before the run.
#pragma once

#include <cstddef>

#include "json/json.hpp"
#include "log/log_writer.hpp"

namespace rtmeter {

// {"stamp_ns", "record_ns"}: medians of a CLOCK_MONOTONIC reading, and of a reading plus a row of
// `columns` values handed to a ring. Writes nothing to the log.
Json measure_instrument(LogWriter& log, std::size_t columns);

}  // namespace rtmeter
