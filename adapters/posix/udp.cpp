// Round trip over UDP, to any address.
#include <netinet/in.h>

#include <optional>

#include "datagrams.hpp"
#include "options.hpp"

namespace rtmeter_posix {
namespace {

constexpr std::size_t kLargestUdpPayload = 65507;  // 65,535 less IP and UDP headers

// The address: where a server listens (a port of its own choice if none is given), where a client's
// server is: option endpoint, as the server's ready line gave it, or else option address.
struct Endpoint {
  std::string field;
  Address address;
};

Endpoint endpoint_of(const rtm_run& run) {
  const std::string address = kOptions.address.of(run);
  const std::string endpoint = kOptions.endpoint.of(run);
  if (run.role == RTM_ROLE_SERVER)
    return {kOptions.address.field(),
            ip_address(address.empty() ? "127.0.0.1" : address, kOptions.address.field())};
  const std::string field = (endpoint.empty() ? kOptions.address : kOptions.endpoint).field();
  const std::string text = endpoint.empty() ? address : endpoint;
  const std::string remedy = "give IP:port, the endpoint that the server's ready line names";
  if (text.empty()) throw kOptions.endpoint.error("", "a client needs its server's address", remedy);
  const Address server = ip_address(text, field);
  if (port_of(server) == 0) throw rtmeter::SetupError(field, text, "the port is missing", remedy);
  return {field, server};
}

// Nothing if it is not given.
std::optional<int> given(const rtm_run& run, const rtmeter::Number& option) {
  if (!option.given(run)) return std::nullopt;
  return static_cast<int>(option.of(run, 0));
}

int read_back(int socket_fd, int level, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  getsockopt(socket_fd, level, option, &value, &length);
  return value;
}

// Sets a socket option and reads it back; the error names the adapter's option `of`, given as `asked`.
void set_and_check(int socket_fd, int level, int option, int value, const rtmeter::Option& of, int asked,
                   const std::string& remedy) {
  if (setsockopt(socket_fd, level, option, &value, sizeof value) != 0)
    throw system_error(of.field(), std::to_string(asked), "setsockopt", remedy);
  if (const int found = read_back(socket_fd, level, option); found != value)
    throw of.error(std::to_string(asked), "was set but reads back as " + std::to_string(found), remedy);
}

// How the network is asked to treat what a socket sends: the field DSCP of its packets (RFC 2474), and
// their priority in this machine's queueing disciplines (SO_PRIORITY).
class TrafficClass {
 public:
  TrafficClass(const rtm_run& run, int family)
      : dscp_(given(run, kOptions.dscp)), priority_(given(run, kOptions.priority)),
        level_(family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP),
        option_(family == AF_INET6 ? IPV6_TCLASS : IP_TOS) {}

  // DSCP first: for IPv4 it also sets the priority, to one that the kernel derives from it.
  void apply_to(int socket_fd) const {
    if (dscp_)
      set_and_check(socket_fd, level_, option_, *dscp_ << kEcnBits, kOptions.dscp, *dscp_, "leave it out");
    if (priority_)
      set_and_check(socket_fd, SOL_SOCKET, SO_PRIORITY, *priority_, kOptions.priority, *priority_,
                    "more than 6 needs root or CAP_NET_ADMIN");
  }
  // What is in effect, asked for or not.
  void describe(int socket_fd, rtmeter::Sink& sink) const {
    sink.put("qos.dscp", std::to_string(read_back(socket_fd, level_, option_) >> kEcnBits));
    sink.put("qos.priority", std::to_string(read_back(socket_fd, SOL_SOCKET, SO_PRIORITY)));
  }

 private:
  static constexpr int kEcnBits = 2;  // the low bits of the byte that DSCP is in

  const std::optional<int> dscp_, priority_;
  const int level_, option_;
};

class Udp final : public Datagrams {
 public:
  Udp(const rtm_run& run, const Endpoint& endpoint)
      : Datagrams(run, endpoint.address.family()), traffic_class_(run, endpoint.address.family()) {
    traffic_class_.apply_to(socket_fd());
    const std::string remedy =
        "choose an address of this machine (ip address) and a free port, or leave them out";
    if (is_server())
      bind_to(endpoint.address, endpoint.field, remedy);
    else if (!connect_to(endpoint.address))
      throw system_error(endpoint.field, to_string(endpoint.address), "connect",
                         "choose an address that this machine has a route to");
  }

  void tell_stamps(rtm_on_stamp on_stamp, void* user) override { stamp_messages(on_stamp, user); }

  void describe(rtmeter::Sink& sink) const override {
    Datagrams::describe(sink);
    sink.put("qos.reliability", "best_effort");
    traffic_class_.describe(socket_fd(), sink);
  }

 private:
  const TrafficClass traffic_class_;
};

}  // namespace

std::unique_ptr<Messaging> make_udp(const rtm_run& run) {
  if (run.reliability == RTM_RELIABLE)
    throw rtmeter::SetupError("reliability", "reliable", "UDP does not repeat what is lost",
                              "choose best_effort, or transport=unix or shm_futex");
  const std::size_t limit = kLargestUdpPayload - sizeof(WireHeader);
  if (run.payload_bytes > limit) throw payload_error(run, "a UDP datagram", limit, less_or_shared(run));
  return std::make_unique<Udp>(run, endpoint_of(run));
}

}  // namespace rtmeter_posix
