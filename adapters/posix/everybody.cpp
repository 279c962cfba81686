// A discovery over UDP multicast on the loopback interface, the least that one can be: who comes says so to
// the group, and who hears that answers with its own address; messages then go to each known address. Who
// leaves says so, too.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <string>
#include <vector>

#include "messaging.hpp"
#include "system.hpp"
#include "wire.hpp"

namespace rtmeter_posix {
namespace {

constexpr std::int64_t kSlice = 50'000'000;  // a wait blocks at most: so soon an interruption is seen
constexpr int kNothing = -2;                 // came
constexpr std::uint16_t kFirstPort = 20'000, kPorts = 10'000;

sockaddr_in address(std::uint32_t host, std::uint16_t port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_addr.s_addr = htonl(host);
  made.sin_port = htons(port);
  return made;
}

bool operator==(const sockaddr_in& a, const sockaddr_in& b) {
  return a.sin_addr.s_addr == b.sin_addr.s_addr && a.sin_port == b.sin_port;
}

class Everybody final : public Messaging, private Loop {
 public:
  explicit Everybody(const rtm_run& run)
      : session_(run.session), tag_(tag_of(session_)), come_(tag_of(session_ + "/come")),
        here_(tag_of(session_ + "/here")), leave_(tag_of(session_ + "/leave")),
        buffer_(kHead + run.payload_bytes) {
    if (run.payload_bytes > kMost) throw payload_error(run, "a datagram", kMost, "choose a smaller payload");
    // A group and a port of the session's own: 239.255.x.y is for use within a site.
    group_ = address(0xEFFF0000U | static_cast<std::uint32_t>(tag_ & 0xFFFF),
                     static_cast<std::uint16_t>(kFirstPort + (tag_ >> 16) % kPorts));
    const sockaddr_in any_port = address(INADDR_LOOPBACK, 0);
    own_socket_ = bound(any_port);
    socklen_t length = sizeof own_;
    getsockname(own_socket_.get(), reinterpret_cast<sockaddr*>(&own_), &length);
    group_socket_ = bound(group_);
    ip_mreq member{group_.sin_addr, any_port.sin_addr};
    set(group_socket_, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof member);
    set(own_socket_, IPPROTO_IP, IP_MULTICAST_IF, &any_port.sin_addr, sizeof any_port.sin_addr);
  }
  ~Everybody() override {
    if (on_message_ != nullptr) say(leave_, group_);
  }

  void watch(rtm_on_match on_match, void* user) override {
    on_match_ = on_match;
    watcher_ = user;
  }
  void* create_publisher(void* /*node*/, const std::string& /*topic*/) override { return this; }
  // The last: now it can hear.
  void* create_subscriber(void* /*node*/, const std::string& /*topic*/, rtm_on_message on_message,
                          void* user) override {
    on_message_ = on_message;
    user_ = user;
    say(come_, group_);
    return this;
  }

  void describe(rtmeter::Sink& sink) const override {
    sink.put("transport", "udp");
    sink.put("qos.reliability", "best_effort");
    sink.put("qos.history", "the receiving socket's buffer (net.core.rmem_default), dropping what is new");
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &group_.sin_addr, text, sizeof text);
    sink.put_chosen("discovery", "announcements to " + std::string(text) + ":" +
                                     std::to_string(ntohs(group_.sin_port)) + " on lo; " +
                                     std::to_string(known_.size()) + " others known");
  }

  int publish(void* /*publisher*/, const rtm_message& message) noexcept override {
    int refused = 0;
    for (const sockaddr_in& to : known_)
      if (send(tag_, message.sequence, message.data, message.bytes, to) != 0) refused = -1;
    return refused;
  }

  Loop& loop() noexcept override { return *this; }

 private:
  static constexpr std::size_t kHead = sizeof(WireHeader), kMost = 65'507 - kHead;

  Fd bound(const sockaddr_in& to) const {
    Fd made(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    if (made.get() < 0) throw system_error("session", session_, "socket", "raise the limit of open files");
    if (to.sin_port != 0) set(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);  // the group's: one each
    if (bind(made.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
      throw system_error("session", session_, "bind", "choose another session");
    return made;
  }
  void set(const Fd& of, int level, int option, const void* value, socklen_t length) const {
    if (setsockopt(of.get(), level, option, value, length) != 0)
      throw system_error("session", session_, "multicast on the loopback interface",
                         "see that lo is up (ip link set lo up)");
  }

  int send(std::uint64_t tag, std::uint64_t sequence, const std::uint8_t* data, std::uint32_t bytes,
           const sockaddr_in& to) const noexcept {
    WireHeader header = to_wire(tag, sequence, bytes);
    iovec parts[] = {{&header, sizeof header}, {const_cast<std::uint8_t*>(data), bytes}};
    msghdr datagram{};
    datagram.msg_iov = parts;
    datagram.msg_iovlen = 2;
    datagram.msg_name = const_cast<sockaddr_in*>(&to);
    datagram.msg_namelen = sizeof to;
    return sendmsg(own_socket_.get(), &datagram, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 0;
  }
  int say(std::uint64_t tag, const sockaddr_in& to) const noexcept { return send(tag, 0, nullptr, 0, to); }

  int next(std::int64_t timeout_ns) noexcept override {
    pollfd watched[] = {{own_socket_.get(), POLLIN, 0}, {group_socket_.get(), POLLIN, 0}};
    const int ready = ppoll(watched, 2, Timeout(std::min(timeout_ns, kSlice)).get(), nullptr);
    if (ready < 0) return errno == EINTR ? 0 : -1;
    return ready == 0 ? 0 : dispatch(1);
  }

  int dispatch(int at_most) noexcept override {
    int callbacks = 0;
    for (const Fd* from : {&group_socket_, &own_socket_})
      while (callbacks < at_most && !interrupted()) {
        const int found = receive(*from);
        if (found == kNothing) break;
        if (found < 0) return -1;
        callbacks += found;
      }
    return callbacks;
  }

  // Calls back for the next datagram: 1, 0 if it was none of ours, kNothing, or -1: failed.
  int receive(const Fd& from) noexcept {
    sockaddr_in sender{};
    socklen_t length = sizeof sender;
    const ssize_t size = recvfrom(from.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC,
                                  reinterpret_cast<sockaddr*>(&sender), &length);
    if (size < 0) return errno == EAGAIN ? kNothing : errno == EINTR ? 0 : -1;
    WireHeader wire, header;
    std::memcpy(&wire, buffer_.data(), sizeof wire);
    const auto bytes = static_cast<std::size_t>(size);
    if (bytes > buffer_.size() || !from_wire(wire, bytes, &header) || sender == own_) return 0;
    if (header.tag == come_) say(here_, sender);
    if (header.tag == come_ || header.tag == here_) return know(sender);
    if (header.tag == leave_) return forget(sender);
    if (header.tag != tag_) return 0;
    const rtm_message message{header.sequence, buffer_.data() + kHead, header.bytes};
    on_message_(user_, &message);
    return 1;
  }

  int know(const sockaddr_in& other) noexcept {
    if (std::any_of(known_.begin(), known_.end(), [&](const sockaddr_in& one) { return one == other; }))
      return 0;
    known_.push_back(other);
    return tell();
  }
  int forget(const sockaddr_in& other) noexcept {
    const auto found =
        std::find_if(known_.begin(), known_.end(), [&](const auto& one) { return one == other; });
    if (found == known_.end()) return 0;
    known_.erase(found);
    return tell();
  }
  int tell() const noexcept {
    if (on_match_ == nullptr) return 0;
    on_match_(watcher_, RTM_PUBLISHER, static_cast<std::int32_t>(known_.size()));
    return 1;
  }

  const std::string session_;
  const std::uint64_t tag_, come_, here_, leave_;  // what a datagram is
  std::vector<std::uint8_t> buffer_;               // one datagram, the largest to come
  sockaddr_in group_{}, own_{};
  Fd own_socket_, group_socket_;
  std::vector<sockaddr_in> known_;
  rtm_on_match on_match_ = nullptr;
  rtm_on_message on_message_ = nullptr;
  void* watcher_ = nullptr;
  void* user_ = nullptr;
};

}  // namespace

std::unique_ptr<Messaging> make_everybody(const rtm_run& run) { return std::make_unique<Everybody>(run); }

}  // namespace rtmeter_posix
