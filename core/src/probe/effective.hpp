// The settings of a run, read back.
#pragma once

#include <vector>

#include "measure/measurement.hpp"
#include "system/audit.hpp"

namespace rtmeter {

// `effective` of spec/probe.md, of the threads as they were found; measurement: null before it is made.
Json effective_settings(const Bench& bench, const std::vector<ThreadFacts>& threads,
                        bool holds_cpu_dma_latency, const Measurement* measurement);

}  // namespace rtmeter
