// Round trip over UDP, to any address.
#include <netinet/in.h>

#include "datagrams.hpp"

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
  const std::string address = rtmeter::option_or(run, "address", "");
  const std::string endpoint = rtmeter::option_or(run, "endpoint", "");
  if (run.role == RTM_ROLE_SERVER)
    return {"option address", ip_address(address.empty() ? "127.0.0.1" : address, "option address")};
  const std::string field = endpoint.empty() ? "option address" : "option endpoint";
  const std::string text = endpoint.empty() ? address : endpoint;
  const std::string remedy = "give IP:port, the endpoint that the server's ready line names";
  if (text.empty())
    throw rtmeter::SetupError("option endpoint", "", "a client needs its server's address", remedy);
  const Address server = ip_address(text, field);
  if (port_of(server) == 0) throw rtmeter::SetupError(field, text, "the port is missing", remedy);
  return {field, server};
}

class Udp final : public Datagrams {
 public:
  Udp(const rtm_run& run, const Endpoint& endpoint) : Datagrams(run, endpoint.address.family()) {
    const std::string remedy =
        "choose an address of this machine (ip address) and a free port, or leave them out";
    if (is_server())
      bind_to(endpoint.address, endpoint.field, remedy);
    else if (!connect_to(endpoint.address))
      throw system_error(endpoint.field, to_string(endpoint.address), "connect",
                         "choose an address that this machine has a route to");
  }

  void describe(rtmeter::Sink& sink) const override {
    Datagrams::describe(sink);
    sink.put("qos.reliability", "best_effort");
  }
};

}  // namespace

std::unique_ptr<Messaging> make_udp(const rtm_run& run) {
  if (run.reliability == RTM_RELIABLE)
    throw rtmeter::SetupError("reliability", "reliable", "UDP does not repeat what is lost",
                              "choose best_effort, or transport=unix or shm_futex");
  const std::size_t limit = kLargestUdpPayload - sizeof(WireHeader);
  if (run.payload_bytes > limit)
    throw payload_error(run, "a UDP datagram", limit, "choose a smaller payload, or transport=shm_futex");
  return std::make_unique<Udp>(run, endpoint_of(run));
}

}  // namespace rtmeter_posix
