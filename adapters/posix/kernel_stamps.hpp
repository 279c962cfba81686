// When the kernel had a datagram: SO_TIMESTAMPING's software stamps (Linux Documentation/networking/
// timestamping.rst), when the driver of the interface took what was sent, and when it handed over what has
// come. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "address.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_posix {

class KernelStamps {
 public:
  // Asks the kernel for them; SetupError where it has none for such a socket.
  void begin(int socket_fd, rtm_on_stamp on_stamp, void* user);
  bool asked() const noexcept { return on_stamp_ != nullptr; }

  // Measured path, all of them; nothing happens unless they were asked for.
  // A datagram was sent: tells its stamp, if the driver has taken it. One system call more, at least.
  void sent(int socket_fd) noexcept;
  // As recvfrom(), and the stamp of what has come, or RTM_ABSENT.
  ssize_t receive(int socket_fd, void* into, std::size_t room, int flags, Address* from,
                  std::int64_t* realtime_ns) noexcept;
  void tell(rtm_end end, std::int64_t realtime_ns) noexcept {
    if (asked() && realtime_ns != RTM_ABSENT) on_stamp_(user_, end, realtime_ns);
  }
  // Takes away stamps that came too late to be told: they keep poll() from waiting.
  void forget(int socket_fd) noexcept;

 private:
  bool next(int socket_fd, std::uint32_t* id, std::int64_t* realtime_ns) noexcept;

  rtm_on_stamp on_stamp_ = nullptr;
  void* user_ = nullptr;
  std::uint32_t next_id_ = 0;  // of the datagram that is sent next, as the kernel counts them
};

}  // namespace rtmeter_posix
