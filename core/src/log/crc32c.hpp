// CRC-32C (Castagnoli; RFC 3720, appendix B.4) of log frames and message payloads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rtmeter {

// The checksum of `bytes` bytes at data, or of what `crc` covers followed by them. Uses the processor's
// instruction where it has one. Measured path: no allocation, lock or system call.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t crc = 0) noexcept;

// The same by table, for processors without the instruction (and the tests).
std::uint32_t crc32c_portable(const void* data, std::size_t bytes, std::uint32_t crc = 0) noexcept;

}  // namespace rtmeter
