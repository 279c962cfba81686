// A chain, or a round trip of several subscribers, over Unix datagram sockets: who publishes a topic listens
// at its abstract name, who hears it asks there for its messages until the first has come; each message then
// goes to everybody who asked.
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "../common/session.hpp"
#include "address.hpp"
#include "messaging.hpp"
#include "options.hpp"
#include "system.hpp"
#include "wire.hpp"

namespace rtmeter_posix {
namespace {

constexpr std::int64_t kSlice = 50'000'000;  // a wait blocks at most: so soon an interruption is seen
constexpr int kNothing = -2;                 // came

class Topics final : public Messaging, private Loop {
 public:
  explicit Topics(const rtm_run& run)
      : session_(run.session), measurement_(run.measurement), socket_(make_socket(run)),
        buffer_(sizeof(WireHeader) + run.payload_bytes) {
    const int room = static_cast<int>(std::min<std::size_t>(64 * buffer_.size(), INT32_MAX));
    for (const int option : {SO_RCVBUF, SO_SNDBUF}) {
      int granted = 0;
      socklen_t length = sizeof granted;
      if (getsockopt(socket_.get(), SOL_SOCKET, option, &granted, &length) == 0 && granted < room)
        setsockopt(socket_.get(), SOL_SOCKET, option, &room, sizeof room);
    }
    sockaddr_un any{};
    any.sun_family = AF_UNIX;  // the kernel chooses an abstract name
    if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(sa_family_t)) != 0)
      throw system_error("session", session_, "bind", "choose another session");
  }

  void* create_publisher(void* /*node*/, const std::string& topic) override {
    Publisher& made = publishers_.emplace_back();
    made.tag = tag(topic);
    made.asked_at = Fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const Address name = name_of(topic);
    if (made.asked_at.get() < 0 || bind(made.asked_at.get(), name.get(), name.length) != 0)
      throw system_error("session", to_string(name), "bind",
                         "choose another session, or end the process that publishes there");
    return &made;
  }

  void* create_subscriber(void* /*node*/, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    return &topics_.emplace_back(Topic{tag(topic), name_of(topic), {on_message, user}});
  }

  void describe(rtmeter::Sink& sink) const override {
    sink.put("transport", "unix");
    sink.put("qos.reliability", "reliable");
    sink.put("qos.history", "the receiving socket's queue (net.unix.max_dgram_qlen), refusing more");
  }

  int publish(void* publisher, const rtm_message& message) noexcept override {
    auto& from = *static_cast<Publisher*>(publisher);
    if (message.sequence == RTM_SEQUENCE_HELLO) admit(from);
    if (sizeof(WireHeader) + message.bytes > buffer_.size()) return -1;
    WireHeader header = to_wire(from.tag, message.sequence, message.bytes);
    iovec parts[] = {{&header, sizeof header}, {const_cast<std::uint8_t*>(message.data), message.bytes}};
    int refused = 0;
    for (Address& hearer : from.hearers) {
      msghdr datagram{};
      datagram.msg_iov = parts;
      datagram.msg_iovlen = 2;
      datagram.msg_name = hearer.get();
      datagram.msg_namelen = hearer.length;
      if (sendmsg(socket_.get(), &datagram, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) refused = -1;
    }
    return refused;
  }

  Loop& loop() noexcept override { return *this; }

 private:
  struct Publisher {
    std::uint64_t tag = 0;
    Fd asked_at;
    std::vector<Address> hearers;
  };
  struct Topic {
    std::uint64_t tag;
    Address publisher;
    Subscription subscription;
    bool heard = false;
  };

  static Fd make_socket(const rtm_run& run) {
    Fd made(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (made.get() < 0)
      throw system_error("session", run.session, "cannot make a socket",
                         "raise the limit of open files (ulimit -n)");
    return made;
  }

  Address name_of(const std::string& topic) const {
    const std::string before = "@rtmeter-" + session_ + "/";
    const auto most = static_cast<long>(sizeof(sockaddr_un::sun_path) - 1 - before.size());
    if (static_cast<long>(topic.size()) <= most) return unix_address(before + topic, "session");
    throw rtmeter_common::too_long(measurement_, session_, topic, most,
                                   "its socket's name is longer than Linux's limit");
  }
  std::uint64_t tag(const std::string& topic) const { return tag_of(session_ + "/" + topic); }

  // Before the start: takes in who has asked.
  static void admit(Publisher& publisher) noexcept {
    for (;;) {
      Address from;
      from.length = sizeof from.storage;
      std::uint64_t asked = 0;
      const ssize_t size =
          recvfrom(publisher.asked_at.get(), &asked, sizeof asked, MSG_DONTWAIT, from.get(), &from.length);
      if (size < 0) return;
      const auto is_same = [&](const Address& known) {
        return known.length == from.length && std::memcmp(&known.storage, &from.storage, from.length) == 0;
      };
      const bool known = std::any_of(publisher.hearers.begin(), publisher.hearers.end(), is_same);
      if (size == sizeof asked && asked == publisher.tag && !known) publisher.hearers.push_back(from);
    }
  }

  // Asks for what has not come yet: before the start, whoever publishes it may not be there.
  void ask() noexcept {
    all_heard_ = true;
    for (Topic& topic : topics_) {
      if (topic.heard) continue;
      all_heard_ = false;
      sendto(socket_.get(), &topic.tag, sizeof topic.tag, MSG_DONTWAIT | MSG_NOSIGNAL, topic.publisher.get(),
             topic.publisher.length);
    }
  }

  int next(std::int64_t timeout_ns) noexcept override {
    if (!all_heard_) ask();
    pollfd watched{socket_.get(), POLLIN, 0};
    const int ready = ppoll(&watched, 1, Timeout(std::min(timeout_ns, kSlice)).get(), nullptr);
    if (ready <= 0) return ready == 0 || errno == EINTR ? 0 : -1;
    const int callbacks = receive();
    return callbacks == kNothing ? 0 : callbacks;
  }

  int dispatch(int at_most) noexcept override {
    int callbacks = 0;
    while (callbacks < at_most && !interrupted()) {
      const int found = receive();
      if (found == kNothing) break;
      if (found < 0) return -1;
      callbacks += found;
    }
    return callbacks;
  }

  // Calls back for the next message: 1, 0 if it was none of ours, kNothing, or -1: failed. Two topics may be
  // one: of two stages of this process that hear the same, each has asked, and the message has come once.
  int receive() noexcept {
    const ssize_t size = recv(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0) return errno == EAGAIN ? kNothing : errno == EINTR ? 0 : -1;
    WireHeader wire, header;
    std::memcpy(&wire, buffer_.data(), sizeof wire);
    const auto bytes = static_cast<std::size_t>(size);
    if (bytes > buffer_.size() || !from_wire(wire, bytes, &header)) return 0;
    int callbacks = 0;
    for (Topic& topic : topics_) {
      if (topic.tag != header.tag) continue;
      topic.heard = true;
      const rtm_message message{header.sequence, buffer_.data() + sizeof header, header.bytes};
      topic.subscription.on_message(topic.subscription.user, &message);
      ++callbacks;
    }
    return callbacks > 0 ? 1 : 0;
  }

  const std::string session_;
  const rtm_measurement measurement_;
  const Fd socket_;
  std::vector<std::uint8_t> buffer_;  // one datagram, the largest to come
  std::deque<Publisher> publishers_;
  std::deque<Topic> topics_;
  bool all_heard_ = false;
};

}  // namespace

std::unique_ptr<Messaging> make_topics(const rtm_run& run) { return std::make_unique<Topics>(run); }

}  // namespace rtmeter_posix
