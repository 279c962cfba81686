// An adapter to copy for a middleware that connects processes: round trips and requests. ../cpp is the one
// for timers and for cycles; docs/add-a-middleware.md goes through both. Client and server are this same
// probe, told apart by run.role; the core sends the messages by which they find each other (sequence
// RTM_SEQUENCE_HELLO) like any other, again and again until one is answered: they need no code here. The
// middleware is the toy of tiny_udp.hpp: put yours in its place.
#include <charconv>
#include <functional>
#include <string>
#include <system_error>

#include "rtmeter/adapter.hpp"
#include "tiny_udp.hpp"

namespace {

struct Options : rtmeter::OptionSet {
  // Where client and server are on two hosts, rtmeter gives the server its host's address in this option.
  rtmeter::Text address{*this, "address", "where the server listens, 127.0.0.1 by default"};
  // What the server put as `endpoint` in describe() comes to the client in this option.
  rtmeter::Text endpoint{*this, "endpoint", "of the client: the server's ADDRESS:PORT, as the server says"};
};

class TwoProcesses final : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink) {
    sink.put("name", "two-processes").put("version", "1");
    sink.put("middleware", "tiny UDP").put("middleware_version", "1");
    // Who names the same can be the other end; leave it out where you cannot tell.
    sink.put("wire", "two-processes");
    for (const char* what : {"wakeup", "roundtrip", "request"}) sink.put("measures", what);
    sink.put("interfaces", "service");
    for (const char* way : {"spin", "spin_once", "poll"}) {
      sink.put("receives.roundtrip", way);
      sink.put("receives.request", way);
    }
    Options().describe(sink);
  }

  // The session tells this run's messages from those of every other on the machine.
  explicit TwoProcesses(const rtm_run& run) : end_(std::hash<std::string>()(run.session)) {
    if (run.reliability == RTM_RELIABLE)
      throw rtmeter::SetupError("reliability", "reliable", "datagrams may be lost", "choose best_effort");
    if (run.payload_bytes > tiny_udp::kMostBytes)
      throw rtmeter::SetupError("payload_bytes", std::to_string(run.payload_bytes), "does not fit a datagram",
                                "give " + std::to_string(tiny_udp::kMostBytes) + " at most");
    if (run.role == RTM_ROLE_SERVER) {
      const std::string address = Options().address.of(run, "127.0.0.1");
      endpoint_ = address + ":" + std::to_string(end_.listen(address));
    } else if (run.role == RTM_ROLE_CLIENT) {
      look_for(Options().endpoint.of(run));
    }
  }

  // After start, and everything is created: what the client needs to know of the server.
  void describe(rtmeter::Sink& sink) const override {
    sink.put("qos.reliability", "best_effort").put("qos.history", "drop_new");
    if (!endpoint_.empty()) sink.put_chosen("endpoint", endpoint_);
  }

  // Topics of a round trip are ping, to the server, and pong, back: here the direction tells them apart.
  void* create_publisher(void* /*node*/, const std::string& /*topic*/) override { return &end_; }
  void* create_subscriber(void* /*node*/, const std::string& /*topic*/, rtm_on_message on_message,
                          void* user) override {
    end_.hear([on_message, user](std::uint64_t sequence, const std::uint8_t* data, std::size_t bytes) {
      const rtm_message message{sequence, data, static_cast<std::uint32_t>(bytes)};
      on_message(user, &message);
    });
    return &end_;
  }

  // A middleware that has services: client and server are other ends, and a reply belongs to its request.
  // The toy has none; here a request is a datagram to the server, and its reply one back.
  void* create_client(void* /*node*/, const std::string& /*service*/, rtm_on_reply on_reply,
                      void* user) override {
    end_.hear([on_reply, user](std::uint64_t sequence, const std::uint8_t* data, std::size_t bytes) {
      const rtm_message message{sequence, data, static_cast<std::uint32_t>(bytes)};
      on_reply(user, RTM_RESULT, &message);
    });
    return &end_;
  }
  void* create_server(void* node, const std::string& service, rtm_on_message on_request,
                      void* user) override {
    return create_subscriber(node, service, on_request, user);
  }
  int call(void* /*client*/, const rtm_message& m) override { return publish(nullptr, m); }
  // The core calls it from within on_request.
  int reply(void* /*server*/, rtm_reply /*what*/, const rtm_message& m) override {
    return publish(nullptr, m);
  }

  // One thread may publish while another spins.
  int publish(void* /*publisher*/, const rtm_message& m) override {
    return end_.send(m.sequence, m.data, m.bytes) ? 0 : -1;
  }
  int spin(std::int64_t timeout_ns) override {
    while (end_.spin_once(in_ms(timeout_ns)) && timeout_ns == INT64_MAX) continue;
    return 0;
  }
  int wait(std::int64_t timeout_ns) override {
    end_.spin_once(in_ms(timeout_ns));
    return 0;
  }
  int spin_some() override { return wait(0); }
  void interrupt() override { end_.interrupt(); }

 private:
  // Rounded up: a wait of less than the least would be none. -1: for ever.
  static int in_ms(std::int64_t timeout_ns) {
    constexpr std::int64_t kMs = 1'000'000, kDay = 86'400'000 * kMs;
    return timeout_ns > kDay ? -1 : static_cast<int>((timeout_ns + kMs - 1) / kMs);
  }

  void look_for(const std::string& endpoint) {
    const std::size_t colon = endpoint.rfind(':');
    const char* const end = endpoint.data() + endpoint.size();
    int port = 0;
    const auto [after, error] = std::from_chars(endpoint.data() + colon + 1, end, port);  // npos + 1 is 0
    if (colon == std::string::npos || error != std::errc{} || after != end)
      throw rtmeter::SetupError("option endpoint", endpoint, "is no ADDRESS:PORT of a server",
                                "start the server first, and give what it prints as its endpoint");
    end_.look_for(endpoint.substr(0, colon), port);
  }

  tiny_udp::End end_;
  std::string endpoint_;
};

}  // namespace

RTMETER_ADAPTER_MAIN(TwoProcesses)
