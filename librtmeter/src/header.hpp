// What the sample logs of a program's own loop say of it.
#pragma once

#include <cstdint>
#include <string>

#include "json/json.hpp"
#include "measure/ticks.hpp"

namespace rtmeter {

// Without columns and first row.
Json loop_header(const std::string& name, std::int64_t period_ns, std::int64_t deadline_ns, double miss_ratio,
                 std::int64_t warm_up);

// Doubts about its data, at its end.
Json loop_doubts(const Ticks& ticks, std::uint64_t due_refused, std::uint64_t due_off_grid);

}  // namespace rtmeter
