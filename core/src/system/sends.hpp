// What this process sends through sockets: counted where it calls the C library, since the kernel keeps no
// count by socket of UDP's. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rtmeter {

enum class Wire : std::size_t { udp, tcp, unix_, other };
constexpr std::size_t kWires = 4;
const char* name_of(Wire wire);

// Sends that succeeded, and their bytes, by kind of socket. Netlink's are left out.
struct Sends {
  std::uint64_t calls = 0, bytes = 0;
};
using SendsByWire = std::array<Sends, kWires>;

// Finds out what kind of socket each is that was sent through, for the time when it is closed. Any thread;
// not on the measured path.
void look_at_sockets() noexcept;

// Until now, of sockets that are open, and of those that were looked at before they were closed, if their
// descriptor is free since.
SendsByWire sends_so_far();

}  // namespace rtmeter
