// sendmsg and its kind, and write, in the place of the C library's: each calls that and counts. A few
// instructions beside a system call, no lock.
#include "system/sends.hpp"

#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

namespace rtmeter {
namespace {

constexpr int kNoWire = -1;  // no socket, or the kernel's own

// Of one descriptor. Its wire is found by who looks at it now and then: it may be closed before it is told.
struct Slot {
  std::atomic<std::uint64_t> calls{0}, bytes{0};
  std::atomic<int> wire{kNoWire};
};
constexpr std::size_t kSlots = 1024;
Slot slots[kSlots];

int option_of(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

int wire_of(int fd) {
  const int domain = option_of(fd, SO_DOMAIN);
  if (domain == AF_NETLINK || domain < 0) return kNoWire;
  const bool is_inet = domain == AF_INET || domain == AF_INET6;
  const int protocol = option_of(fd, SO_PROTOCOL);
  return static_cast<int>(domain == AF_UNIX                    ? Wire::unix_
                          : is_inet && protocol == IPPROTO_UDP ? Wire::udp
                          : is_inet && protocol == IPPROTO_TCP ? Wire::tcp
                                                               : Wire::other);
}

// One instruction: a thread that were interrupted between reading and writing would take back whatever others
// counted meanwhile.
void add(std::atomic<std::uint64_t>& to, std::uint64_t more) noexcept {
  to.fetch_add(more, std::memory_order_relaxed);
}

ssize_t counted(int fd, ssize_t sent) noexcept {
  if (sent < 0 || static_cast<std::size_t>(fd) >= kSlots) return sent;
  add(slots[fd].calls, 1);
  add(slots[fd].bytes, static_cast<std::uint64_t>(sent));
  return sent;
}

// The C library's own, or a sanitizer's, which is behind ours in the order of loading.
template <typename Function>
struct Next {
  const char* name;
  std::atomic<Function*> found{nullptr};
  Function* get() noexcept {
    Function* function = found.load(std::memory_order_relaxed);
    if (__builtin_expect(function == nullptr, 0)) {
      function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
      found.store(function, std::memory_order_relaxed);
    }
    return function;
  }
};
Next<decltype(::send)> next_send{"send"};
Next<decltype(::sendto)> next_sendto{"sendto"};
Next<decltype(::sendmsg)> next_sendmsg{"sendmsg"};
Next<decltype(::sendmmsg)> next_sendmmsg{"sendmmsg"};
Next<ssize_t(int, const void*, size_t)> next_write{"write"};
Next<ssize_t(int, const iovec*, int)> next_writev{"writev"};

// Looked up and touched before anything is measured.
[[maybe_unused]] const bool ready = [] {
  next_send.get(), next_sendto.get(), next_sendmsg.get(), next_sendmmsg.get();
  next_write.get(), next_writev.get();
  for (Slot& slot : slots) add(slot.calls, 0);
  return true;
}();

}  // namespace

const char* name_of(Wire wire) {
  static const char* const names[] = {"udp", "tcp", "unix", "other"};
  return names[static_cast<std::size_t>(wire)];
}

void look_at_sockets() noexcept {
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (slots[i].calls.load(std::memory_order_relaxed) == 0) continue;
    if (slots[i].wire.load(std::memory_order_relaxed) != kNoWire) continue;
    slots[i].wire.store(wire_of(static_cast<int>(i)), std::memory_order_relaxed);
  }
}

SendsByWire sends_so_far() {
  SendsByWire all{};
  for (std::size_t i = 0; i < kSlots; ++i) {
    const std::uint64_t calls = slots[i].calls.load(std::memory_order_relaxed);
    if (calls == 0) continue;
    const int fd = static_cast<int>(i), domain = option_of(fd, SO_DOMAIN);
    const int wire = domain < 0 ? slots[i].wire.load(std::memory_order_relaxed) : wire_of(fd);
    if (wire == kNoWire) continue;
    all[static_cast<std::size_t>(wire)].calls += calls;
    all[static_cast<std::size_t>(wire)].bytes += slots[i].bytes.load(std::memory_order_relaxed);
  }
  return all;
}

}  // namespace rtmeter

extern "C" {

ssize_t send(int fd, const void* data, size_t bytes, int flags) {
  return rtmeter::counted(fd, rtmeter::next_send.get()(fd, data, bytes, flags));
}
ssize_t sendto(int fd, const void* data, size_t bytes, int flags, const sockaddr* to, socklen_t size) {
  return rtmeter::counted(fd, rtmeter::next_sendto.get()(fd, data, bytes, flags, to, size));
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return rtmeter::counted(fd, rtmeter::next_sendmsg.get()(fd, message, flags));
}
int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  const int sent = rtmeter::next_sendmmsg.get()(fd, messages, count, flags);
  for (int i = 0; i < sent; ++i) rtmeter::counted(fd, static_cast<ssize_t>(messages[i].msg_len));
  return sent;
}
ssize_t write(int fd, const void* data, size_t bytes) {
  return rtmeter::counted(fd, rtmeter::next_write.get()(fd, data, bytes));
}
ssize_t writev(int fd, const iovec* parts, int count) {
  return rtmeter::counted(fd, rtmeter::next_writev.get()(fd, parts, count));
}

}  // extern "C"
