// The releases: fixed before measuring starts, moved by nothing.
#pragma once

#include <cstdint>

namespace rtmeter {

struct Grid {
  std::int64_t t0_ns = 0, period_ns = 1;
  std::int64_t release_ns(std::int64_t k) const noexcept { return t0_ns + k * period_ns; }
  // The latest release at or before at_ns (negative: before release 0).
  std::int64_t latest(std::int64_t at_ns) const noexcept {
    const std::int64_t d = at_ns - t0_ns;
    return d >= 0 ? d / period_ns : -((-d + period_ns - 1) / period_ns);
  }
};

}  // namespace rtmeter
