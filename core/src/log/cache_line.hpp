#pragma once

#include <cstddef>

namespace rtmeter {

// What one CPU's write takes away from the others, bytes; on every architecture that the probes run on.
inline constexpr std::size_t kCacheLine = 64;

}  // namespace rtmeter
