#include "datagrams.hpp"

#include <poll.h>
#include <sys/uio.h>

#include <algorithm>

#include "options.hpp"

namespace rtmeter_posix {
namespace {

// How long a receive blocks at most: so soon an interruption is seen.
constexpr std::int64_t kSlice = 50'000'000;
constexpr int kNothing = -2;  // came

}  // namespace

Datagrams::Datagrams(const rtm_run& run, int family)
    : role_(run.role), session_(run.session), socket_(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0)),
      buffer_(sizeof(WireHeader) + run.payload_bytes) {
  const timeval slice{0, kSlice / 1000};
  if (socket_.get() < 0 || setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice) != 0)
    throw system_error(kOptions.transport.field(), kOptions.transport.word_of(run), "cannot make a socket",
                       "raise the limit of open files (ulimit -n), or choose another transport");
  // Room for some messages on their way; what the system grants is read back in describe().
  const int room = static_cast<int>(std::min<std::size_t>(8 * buffer_.size(), INT32_MAX));
  int granted = 0;
  socklen_t length = sizeof granted;
  for (const int option : {SO_RCVBUF, SO_SNDBUF})
    if (getsockopt(socket_.get(), SOL_SOCKET, option, &granted, &length) == 0 && granted < room)
      setsockopt(socket_.get(), SOL_SOCKET, option, &room, sizeof room);
}

void Datagrams::bind_to(const Address& address, const std::string& field, const std::string& remedy) {
  if (bind(socket_.get(), address.get(), address.length) != 0)
    throw system_error(field, to_string(address), "bind", remedy);
}

bool Datagrams::connect_to(const Address& server) noexcept {
  peer_ = server;
  connected_ = connect(socket_.get(), peer_.get(), peer_.length) == 0;
  return connected_;
}

void* Datagrams::create_publisher(void* /*node*/, const std::string& topic) {
  return &publishers_.emplace_back(tag(topic));
}

void* Datagrams::create_subscriber(void* /*node*/, const std::string& topic, rtm_on_message on_message,
                                   void* user) {
  return &topics_.emplace_back(Topic{tag(topic), {on_message, user}});
}

void Datagrams::describe(rtmeter::Sink& sink) const {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  getsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, &length);
  sink.put("qos.history", "the socket's receive buffer, SO_RCVBUF = " + std::to_string(bytes));
  sink.put_chosen(is_server() ? "endpoint" : "local_address", to_string(bound_address(socket_.get())));
}

int Datagrams::publish(void* publisher, const rtm_message& message) noexcept {
  if (sizeof(WireHeader) + message.bytes > buffer_.size() || peer_.length == 0) return -1;
  if (!is_server() && !connected_ && !connect_to(peer_)) return -1;
  WireHeader header = to_wire(*static_cast<std::uint64_t*>(publisher), message.sequence, message.bytes);
  iovec parts[] = {{&header, sizeof header}, {const_cast<std::uint8_t*>(message.data), message.bytes}};
  msghdr datagram{};
  datagram.msg_iov = parts;
  datagram.msg_iovlen = 2;
  if (is_server()) {
    datagram.msg_name = peer_.get();
    datagram.msg_namelen = peer_.length;
  }
  // UDP reports what became of an earlier datagram (the port was closed) in place of sending this one.
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (sendmsg(socket_.get(), &datagram, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
      stamps_.sent(socket_.get());
      return 0;
    }
    if (errno != ECONNREFUSED && errno != EINTR) return -1;
  }
  return -1;
}

// One system call a message. What is left of a timeout below a slice is waited for by another.
int Datagrams::next(std::int64_t timeout_ns) noexcept {
  int flags = 0;
  if (timeout_ns < kSlice) {
    pollfd watched{socket_.get(), POLLIN, 0};
    const int ready = ppoll(&watched, 1, Timeout(timeout_ns).get(), nullptr);
    if (ready <= 0) return ready == 0 || errno == EINTR ? 0 : -1;
    if ((watched.revents & POLLERR) != 0) stamps_.forget(socket_.get());
    flags = MSG_DONTWAIT;
  }
  const int callbacks = receive(flags);
  return callbacks == kNothing ? 0 : callbacks;
}

int Datagrams::dispatch(int at_most) noexcept {
  constexpr int kTries = 1024;  // bounds the time that strangers can take
  int callbacks = 0;
  for (int tries = 0; tries < kTries && callbacks < at_most && !interrupted(); ++tries) {
    const int found = receive(MSG_DONTWAIT);
    if (found == kNothing) break;
    if (found < 0) return -1;
    callbacks += found;
  }
  return callbacks;
}

// Calls back for the next message: 1, 0 if it was none of ours, kNothing, or -1: failed.
int Datagrams::receive(int flags) noexcept {
  Address from;
  from.length = sizeof from.storage;
  std::int64_t realtime_ns = RTM_ABSENT;
  const ssize_t size = stamps_.asked() ? stamps_.receive(socket_.get(), buffer_.data(), buffer_.size(),
                                                         flags | MSG_TRUNC, &from, &realtime_ns)
                                       : recvfrom(socket_.get(), buffer_.data(), buffer_.size(),
                                                  flags | MSG_TRUNC, from.get(), &from.length);
  if (size >= 0) return deliver(static_cast<std::size_t>(size), from, realtime_ns) ? 1 : 0;
  if (errno == EAGAIN) return kNothing;
  return errno == EINTR || errno == ECONNREFUSED || errno == ECONNRESET ? 0 : -1;
}

bool Datagrams::deliver(std::size_t size, const Address& from, std::int64_t realtime_ns) noexcept {
  WireHeader wire, header;
  std::memcpy(&wire, buffer_.data(), sizeof wire);
  if (size > buffer_.size() || !from_wire(wire, size, &header)) return false;
  for (const Topic& topic : topics_) {
    if (topic.tag != header.tag) continue;
    if (is_server()) peer_ = from;
    const rtm_message message{header.sequence, buffer_.data() + sizeof header, header.bytes};
    stamps_.tell(RTM_SUBSCRIBER, realtime_ns);
    topic.subscription.on_message(topic.subscription.user, &message);
    return true;
  }
  return false;
}

}  // namespace rtmeter_posix
