// What carries a run's messages, and how long they can be.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "options.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_ros1 {

constexpr std::uint32_t kRoom = 64;  // for what is sent beside the payload
constexpr std::uint32_t kMostTcp = 1000000000 - kRoom;  // roscpp ends a connection that announces more

// Of a client: whether it keeps its connection.
inline bool checked_service(const rtm_run& run) {
  if (run.payload_bytes > kMostTcp)
    throw rtmeter::SetupError("payload_bytes", std::to_string(run.payload_bytes),
                              "TCPROS carries at most " + std::to_string(kMostTcp) + " bytes of payload",
                              "choose a smaller payload");
  return kOptions.persistent.of(run);
}

// The transport of a round trip.
inline std::string checked_transport(const rtm_run& run) {
  std::string transport = kOptions.transport.of(run);
  if (transport == "udp" && run.reliability == RTM_RELIABLE)
    throw rtmeter::SetupError("reliability", "reliable", "UDPROS repeats nothing that was lost",
                              "choose best_effort, or option transport=tcp");
  constexpr std::uint32_t kMostUdp = 65535 * 1492 - kRoom;  // its datagrams, numbered in 16 bits
  const std::uint32_t most = transport == "udp" ? kMostUdp : kMostTcp;
  if (run.payload_bytes > most)
    throw rtmeter::SetupError("payload_bytes", std::to_string(run.payload_bytes),
                              (transport == "udp" ? "UDPROS" : "TCPROS") + std::string(" carries at most ") +
                                  std::to_string(most) + " bytes of payload",
                              "choose a smaller payload");
  return transport;
}

}  // namespace rtmeter_ros1
