// Round trip over Unix datagram sockets. Abstract names vanish with their process.
#include <sys/un.h>

#include "datagrams.hpp"
#include "options.hpp"

namespace rtmeter_posix {
namespace {

constexpr const char* kRemedy = "choose another path or session, or end the process that listens there";

// Linux takes a Unix datagram if it fits the sender's SO_SNDBUF and memory can be had: one is sent to
// find out.
void check_payload(const rtm_run& run, int socket_fd, std::size_t datagram_bytes) {
  int send_buffer = 0;
  socklen_t length = sizeof send_buffer;
  getsockopt(socket_fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, &length);
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
    throw system_error(kOptions.transport.field(), "unix", "socketpair",
                       "raise the limit of open files (ulimit -n)");
  const Fd sender(pair[0]), receiver(pair[1]);
  const int half = send_buffer / 2;  // the kernel doubles what is asked for
  setsockopt(sender.get(), SOL_SOCKET, SO_SNDBUF, &half, sizeof half);
  const std::vector<std::uint8_t> datagram(datagram_bytes);
  if (send(sender.get(), datagram.data(), datagram.size(), MSG_DONTWAIT) >= 0) return;
  constexpr std::size_t kOverhead = 32;  // af_unix: a datagram may take sk_sndbuf - 32
  throw payload_error(run, "a Unix datagram",
                      static_cast<std::size_t>(send_buffer) - kOverhead - sizeof(WireHeader),
                      less_or_shared(run) + ", or raise net.core.wmem_max");
}

class Unix final : public Datagrams {
 public:
  explicit Unix(const rtm_run& run) : Datagrams(run, AF_UNIX) {
    check_payload(run, socket_fd(), datagram_bytes());
    const std::string address = kOptions.address.of(run);
    const std::string endpoint = kOptions.endpoint.of(run);
    const bool use_endpoint = !is_server() && !endpoint.empty();
    const std::string text = use_endpoint ? endpoint : address;
    const std::string field = use_endpoint      ? kOptions.endpoint.field()
                              : address.empty() ? "session"
                                                : kOptions.address.field();
    const Address server = unix_address(text.empty() ? std::string("@rtmeter-") + run.session : text, field);
    if (is_server()) {
      listen_at(server, field);
    } else {
      bind_to(any_name(), field, kRemedy);  // so that the server can answer
      connect_to(server);                   // or by the first publish(), once the server listens
    }
  }
  ~Unix() override {
    if (!path_.empty()) unlink(path_.c_str());
  }

  void describe(rtmeter::Sink& sink) const override {
    Datagrams::describe(sink);
    sink.put("qos.reliability", "reliable");
  }

 private:
  // The kernel chooses an abstract name.
  static Address any_name() {
    Address any;
    any.storage.ss_family = AF_UNIX;
    any.length = sizeof(sa_family_t);
    return any;
  }

  void listen_at(const Address& address, const std::string& field) {
    const std::string name = to_string(address);
    remove_dead_socket(address, SOCK_DGRAM);
    bind_to(address, field, kRemedy);
    if (name.front() == '/') path_ = name;
  }

  std::string path_;  // to unlink; empty for abstract names and clients
};

}  // namespace

std::unique_ptr<Messaging> make_unix(const rtm_run& run) { return std::make_unique<Unix>(run); }

}  // namespace rtmeter_posix
