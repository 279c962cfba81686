// Whether a message is larger than what a socket may hold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

namespace rtmeter_common {

// The largest receive buffer of this process's UDP sockets, bytes; 0: it has none.
inline int largest_receive_buffer() {
  constexpr int kMost = 1024;
  int largest = 0;
  for (int fd = 0; fd < kMost; ++fd) {
    int protocol = 0, bytes = 0;
    socklen_t size = sizeof protocol;
    if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_UDP) continue;
    if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size) == 0) largest = std::max(largest, bytes);
  }
  return largest;
}

// Why a message that comes by UDP is likely to be lost whole; empty where the buffer has room for it.
inline std::string too_large_to_receive(std::uint32_t payload_bytes) {
  const int holds = largest_receive_buffer();
  if (holds == 0 || payload_bytes <= static_cast<std::uint32_t>(holds)) return "";
  std::uint64_t by_default = 0, at_most = 0;
  std::ifstream("/proc/sys/net/core/rmem_default") >> by_default;
  std::ifstream("/proc/sys/net/core/rmem_max") >> at_most;
  return " (a payload of " + std::to_string(payload_bytes) +
         " bytes is more than the receive buffer of its sockets holds, " + std::to_string(holds) +
         " bytes; net.core.rmem_default = " + std::to_string(by_default) +
         ", net.core.rmem_max = " + std::to_string(at_most) + ")";
}

}  // namespace rtmeter_common
