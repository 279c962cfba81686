// The system's clocks, tied together at one moment.
#include "system/clock_anchors.hpp"

#include <time.h>

#include <cstdint>

namespace rtmeter {
namespace {

std::int64_t read_ns(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

Json clock_anchors() {
  constexpr int kAttempts = 16;  // the closest of some: one is interrupted now and then
  std::int64_t best_span_ns = INT64_MAX;
  Json best;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::int64_t first_ns = read_ns(CLOCK_MONOTONIC);
    const std::int64_t raw_ns = read_ns(CLOCK_MONOTONIC_RAW);
    const std::int64_t boottime_ns = read_ns(CLOCK_BOOTTIME);
    const std::int64_t realtime_ns = read_ns(CLOCK_REALTIME);
    const std::int64_t span_ns = read_ns(CLOCK_MONOTONIC) - first_ns;
    if (span_ns >= best_span_ns) continue;
    best_span_ns = span_ns;
    best = Json(Json::Object{{"monotonic_ns", first_ns + span_ns / 2},
                             {"monotonic_raw_ns", raw_ns},
                             {"boottime_ns", boottime_ns},
                             {"realtime_ns", realtime_ns}});
  }
  return best;
}

}  // namespace rtmeter
