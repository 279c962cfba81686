// How a message travels in a datagram: 24 bytes, little-endian, then the payload.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <endian.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace rtmeter_posix {

// Tells a run's own messages from all others: FNV-1a, 64 bit.
inline std::uint64_t tag_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

struct WireHeader {
  std::uint32_t magic;
  std::uint32_t bytes;  // of the payload
  std::uint64_t tag;    // tag_of(session + "/" + topic)
  std::uint64_t sequence;
};
static_assert(sizeof(WireHeader) == 24, "no padding on the wire");

constexpr std::uint32_t kWireMagic = 0x314d5452;  // "RTM1"

inline WireHeader to_wire(std::uint64_t tag, std::uint64_t sequence, std::uint32_t bytes) noexcept {
  return {htole32(kWireMagic), htole32(bytes), htole64(tag), htole64(sequence)};
}

// True if a datagram of `size` bytes that starts with `wire` is a whole message; fills *header.
inline bool from_wire(const WireHeader& wire, std::size_t size, WireHeader* header) noexcept {
  if (size < sizeof wire || le32toh(wire.magic) != kWireMagic) return false;
  *header = {kWireMagic, le32toh(wire.bytes), le64toh(wire.tag), le64toh(wire.sequence)};
  return header->bytes == size - sizeof wire;
}

}  // namespace rtmeter_posix
