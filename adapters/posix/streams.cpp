#include "streams.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>

#include <algorithm>

#include "options.hpp"

namespace rtmeter_posix {
namespace {

constexpr std::int64_t kSlice = 50'000'000;  // a receive blocks at most: so soon an interruption is seen
constexpr int kPatienceMs = 2'000;  // of a send whose other end does not read
constexpr int kNothing = -2;  // came
constexpr const char* kRemedy = "choose another address or session, or end the process that listens there";

// Where a server listens, and a client finds it.
Address address_of(const rtm_run& run, int family) {
  const std::string address = kOptions.address.of(run), endpoint = kOptions.endpoint.of(run);
  const bool use_endpoint = run.role == RTM_ROLE_CLIENT && !endpoint.empty();
  const std::string text = use_endpoint ? endpoint : address;
  const std::string field = (use_endpoint ? kOptions.endpoint : kOptions.address).field();
  if (family == AF_UNIX)
    return unix_address(text.empty() ? std::string("@rtmeter-") + run.session : text, field);
  const Address found = ip_address(text.empty() ? "127.0.0.1" : text, field);
  if (run.role == RTM_ROLE_CLIENT && port_of(found) == 0)
    throw rtmeter::SetupError(field, text, "a client needs its server's address and port",
                              "give IP:port, the endpoint that the server's ready line names");
  return found;
}

Fd make_socket(int family) {
  Fd made(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (made.get() < 0)
    throw system_error(kOptions.stream.field(), "", "cannot make a socket",
                       "raise the limit of open files (ulimit -n)");
  return made;
}

// A receive ends after a slice; small frames leave at once.
void prepare(int fd, int family) noexcept {
  const timeval slice{0, kSlice / 1000};
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
  if (family != AF_UNIX) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

Stream::Stream(const rtm_run& run, int family)
    : role_(run.role), session_(run.session), address_(address_of(run, family)),
      frame_(sizeof(WireHeader) + run.payload_bytes), out_(frame_.size()) {
  if (!is_server()) return;
  listener_ = make_socket(family);
  const int yes = 1;
  setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (family == AF_UNIX) remove_dead_socket(address_, SOCK_STREAM);
  if (bind(listener_.get(), address_.get(), address_.length) != 0 || listen(listener_.get(), 8) != 0)
    throw system_error(kOptions.address.field(), to_string(address_), "bind", kRemedy);
  const std::string name = to_string(address_);
  if (family == AF_UNIX && name.front() == '/') path_ = name;
}

Stream::~Stream() {
  if (!path_.empty()) unlink(path_.c_str());
}

void* Stream::create_client(const std::string& service, rtm_on_reply on_reply, void* user) {
  tag_ = tag_of(session_ + "/" + service);
  on_reply_ = on_reply;
  user_ = user;
  return this;
}

void* Stream::create_server(const std::string& service, rtm_on_message on_request, void* user) {
  tag_ = tag_of(session_ + "/" + service);
  on_request_ = on_request;
  user_ = user;
  return this;
}

void Stream::describe(rtmeter::Sink& sink) const {
  sink.put("qos.reliability", "reliable");
  sink.put("qos.history", "the sockets' buffers; who sends waits for room");
  if (is_server()) sink.put_chosen("endpoint", to_string(bound_address(listener_.get())));
}

// Before the run: nobody else uses the stream yet.
void Stream::connect_to_server() noexcept {
  Fd made(socket(address_.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (made.get() < 0 || connect(made.get(), address_.get(), address_.length) != 0) return;
  prepare(made.get(), address_.family());
  stream_ = std::move(made);
}

int Stream::send(const rtm_message& message) noexcept {
  const std::size_t bytes = sizeof(WireHeader) + message.bytes;
  if (bytes > out_.size() || lost_.load(std::memory_order_relaxed)) return -1;
  if (stream_.get() < 0) {
    if (message.sequence == RTM_SEQUENCE_HELLO) connect_to_server();
    if (stream_.get() < 0) return -1;
  }
  const WireHeader header = to_wire(tag_, message.sequence, message.bytes);
  std::memcpy(out_.data(), &header, sizeof header);
  if (message.bytes > 0) std::memcpy(out_.data() + sizeof header, message.data, message.bytes);
  for (std::size_t sent = 0; sent < bytes;) {
    const ssize_t n = ::send(stream_.get(), out_.data() + sent, bytes - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      pollfd room{stream_.get(), POLLOUT, 0};
      if (poll(&room, 1, kPatienceMs) == 1) continue;
      if (sent > 0) shutdown(stream_.get(), SHUT_RDWR);  // half a frame: nothing after it could be read
      return -1;
    } else if (errno != EINTR) {
      return -1;
    }
  }
  return 0;
}

// The other end is gone: a server hears the next, a client nobody.
void Stream::lose() noexcept {
  filled_ = 0;
  if (is_server())
    stream_ = Fd();
  else
    lost_.store(true, std::memory_order_relaxed);
}

int Stream::accept_one(std::int64_t timeout_ns) noexcept {
  pollfd asked{listener_.get(), POLLIN, 0};
  const int ready = ppoll(&asked, 1, Timeout(std::min(timeout_ns, kSlice)).get(), nullptr);
  if (ready <= 0) return ready == 0 || errno == EINTR ? 0 : -1;
  Fd made(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (made.get() < 0) return 0;
  prepare(made.get(), address_.family());
  stream_ = std::move(made);
  return 0;
}

// One system call a frame. What is left of a timeout below a slice is waited for by another.
int Stream::next(std::int64_t timeout_ns) noexcept {
  if (is_server() && stream_.get() < 0) return accept_one(timeout_ns);
  int flags = 0;
  if (timeout_ns < kSlice || lost_ || stream_.get() < 0) {
    pollfd watched{stream_.get(), POLLIN, 0};
    const bool hears = !lost_ && stream_.get() >= 0;  // else nothing comes: it waits
    const int ready = ppoll(&watched, hears ? 1 : 0, Timeout(std::min(timeout_ns, kSlice)).get(), nullptr);
    if (ready <= 0) return ready == 0 || errno == EINTR ? 0 : -1;
    flags = MSG_DONTWAIT;
  }
  const int callbacks = receive(flags);
  return callbacks == kNothing ? 0 : callbacks;
}

int Stream::dispatch(int at_most) noexcept {
  if (is_server() && stream_.get() < 0) return accept_one(0);
  int callbacks = 0;
  while (callbacks < at_most && !interrupted() && !lost_ && stream_.get() >= 0) {
    const int found = receive(MSG_DONTWAIT);
    if (found == kNothing) break;
    if (found < 0) return -1;
    callbacks += found;
  }
  return callbacks;
}

// Calls back for the next frame: 1, 0 if it is not whole yet, kNothing, or -1: failed.
int Stream::receive(int flags) noexcept {
  const ssize_t size = recv(stream_.get(), frame_.data() + filled_, frame_.size() - filled_, flags);
  if (size > 0) {
    filled_ += static_cast<std::size_t>(size);
    return deliver();
  }
  if (size < 0 && errno == EAGAIN) return kNothing;
  if (size < 0 && errno == EINTR) return 0;
  lose();
  return 0;
}

int Stream::deliver() noexcept {
  WireHeader wire, header;
  if (filled_ < sizeof wire) return 0;
  std::memcpy(&wire, frame_.data(), sizeof wire);
  const std::size_t bytes = sizeof wire + le32toh(wire.bytes);
  const bool ours = bytes <= frame_.size() && from_wire(wire, bytes, &header) && header.tag == tag_;
  if (!ours) {
    lose();  // a stranger: no frame of theirs has a known end
    return 0;
  }
  if (filled_ < bytes) return 0;
  const rtm_message message{header.sequence, frame_.data() + sizeof wire, header.bytes};
  if (is_server())
    on_request_(user_, &message);
  else
    on_reply_(user_, RTM_RESULT, &message);
  filled_ -= bytes;
  std::memmove(frame_.data(), frame_.data() + bytes, filled_);
  return 1;
}

std::unique_ptr<Stream> make_unix_stream(const rtm_run& run) {
  return std::make_unique<Stream>(run, AF_UNIX);
}
std::unique_ptr<Stream> make_tcp_stream(const rtm_run& run) {
  const std::string text = run.role == RTM_ROLE_SERVER ? kOptions.address.of(run) : kOptions.endpoint.of(run);
  return std::make_unique<Stream>(run, text.find(']') == std::string::npos ? AF_INET : AF_INET6);
}

}  // namespace rtmeter_posix
