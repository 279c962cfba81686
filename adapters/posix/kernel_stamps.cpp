#include "kernel_stamps.hpp"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <sys/uio.h>
#include <time.h>

#include <cstring>

#include "system.hpp"

namespace rtmeter_posix {
namespace {

constexpr unsigned kAsked = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE |
                            SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY;

// What comes beside a datagram: a stamp, and of a stamp of what was sent its error with an address.
constexpr std::size_t kBesideBytes = 256;

std::int64_t software_stamp(const cmsghdr& part) noexcept {
  scm_timestamping stamps;
  std::memcpy(&stamps, CMSG_DATA(&part), sizeof stamps);
  const timespec& t = stamps.ts[0];
  return t.tv_sec == 0 && t.tv_nsec == 0 ? RTM_ABSENT
                                         : static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

bool is_stamp(const cmsghdr& part) noexcept {
  return part.cmsg_level == SOL_SOCKET && part.cmsg_type == SCM_TIMESTAMPING;
}

bool is_error(const cmsghdr& part) noexcept {
  return (part.cmsg_level == IPPROTO_IP && part.cmsg_type == IP_RECVERR) ||
         (part.cmsg_level == IPPROTO_IPV6 && part.cmsg_type == IPV6_RECVERR);
}

}  // namespace

void KernelStamps::begin(int socket_fd, rtm_on_stamp on_stamp, void* user) {
  unsigned granted = 0;
  socklen_t length = sizeof granted;
  if (setsockopt(socket_fd, SOL_SOCKET, SO_TIMESTAMPING, &kAsked, sizeof kAsked) != 0 ||
      getsockopt(socket_fd, SOL_SOCKET, SO_TIMESTAMPING, &granted, &length) != 0)
    throw system_error("kernel_stamps", "true", "SO_TIMESTAMPING", "leave it out: this kernel has none");
  if ((granted & kAsked) != kAsked)
    throw rtmeter::SetupError("kernel_stamps", "true", "the kernel grants other stamps than were asked for",
                              "leave it out");
  on_stamp_ = on_stamp;
  user_ = user;
}

// The driver took it from within the call that sent it, unless a queueing discipline holds it back. What is
// found of earlier datagrams came too late.
void KernelStamps::sent(int socket_fd) noexcept {
  if (!asked()) return;
  const std::uint32_t own = next_id_++;
  std::uint32_t id = 0;
  std::int64_t realtime_ns = RTM_ABSENT;
  while (next(socket_fd, &id, &realtime_ns)) {
    if (static_cast<std::int32_t>(id - own) < 0) continue;
    next_id_ = id + 1;  // a send that failed may have been counted
    return tell(RTM_PUBLISHER, realtime_ns);
  }
}

void KernelStamps::forget(int socket_fd) noexcept {
  std::uint32_t id = 0;
  std::int64_t realtime_ns = 0;
  while (asked() && next(socket_fd, &id, &realtime_ns)) {
  }
}

// The oldest stamp of what was sent that is there; false: there is none.
bool KernelStamps::next(int socket_fd, std::uint32_t* id, std::int64_t* realtime_ns) noexcept {
  alignas(cmsghdr) char beside[kBesideBytes];
  msghdr found{};
  found.msg_control = beside;
  found.msg_controllen = sizeof beside;
  if (recvmsg(socket_fd, &found, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return false;
  bool is_ours = false;
  *realtime_ns = RTM_ABSENT;
  for (cmsghdr* part = CMSG_FIRSTHDR(&found); part != nullptr; part = CMSG_NXTHDR(&found, part)) {
    if (is_stamp(*part)) *realtime_ns = software_stamp(*part);
    if (!is_error(*part)) continue;
    sock_extended_err error;
    std::memcpy(&error, CMSG_DATA(part), sizeof error);
    is_ours = error.ee_origin == SO_EE_ORIGIN_TIMESTAMPING && error.ee_info == SCM_TSTAMP_SND;
    *id = error.ee_data;
  }
  if (!is_ours) *id = next_id_ - 1 - (std::uint32_t{1} << 30);  // older than any that is waited for
  return true;
}

ssize_t KernelStamps::receive(int socket_fd, void* into, std::size_t room, int flags, Address* from,
                              std::int64_t* realtime_ns) noexcept {
  alignas(cmsghdr) char beside[kBesideBytes];
  iovec part_of{into, room};
  msghdr datagram{};
  datagram.msg_name = from->get();
  datagram.msg_namelen = from->length;
  datagram.msg_iov = &part_of;
  datagram.msg_iovlen = 1;
  datagram.msg_control = beside;
  datagram.msg_controllen = sizeof beside;
  const ssize_t size = recvmsg(socket_fd, &datagram, flags);
  from->length = datagram.msg_namelen;
  if (size < 0) return size;
  for (cmsghdr* part = CMSG_FIRSTHDR(&datagram); part != nullptr; part = CMSG_NXTHDR(&datagram, part))
    if (is_stamp(*part)) *realtime_ns = software_stamp(*part);
  return size;
}

}  // namespace rtmeter_posix
