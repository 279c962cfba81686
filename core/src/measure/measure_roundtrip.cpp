// roundtrip: how long does ping-pong take, and does it come back in time?
#include "measure/answerer.hpp"
#include "measure/asker.hpp"

namespace rtmeter {
namespace {

enum Column : std::size_t { kRelease, kSent, kReceived, kFree, kStatus, kColumns };

class Client final : public Asker<kColumns, kSent, kReceived, kFree> {
 public:
  using Asker::Asker;

 private:
  void create_ends() override {
    publisher_ = b_.session.create_publisher(node_, "ping");
    b_.session.create_subscriber(node_, "pong", &Client::on_pong, this);
  }
  std::string ends() const override { return "topics ping and pong"; }
  void transmit(const rtm_message& message) noexcept override { b_.session.publish(publisher_, message); }
  void greet_with(const rtm_message& message) noexcept override { transmit(message); }

  static void on_pong(void* user, const rtm_message* message) {
    auto* self = static_cast<Client*>(user);
    const std::int64_t now_ns = self->b_.clock.now_ns();
    self->hear(*message, now_ns);
  }

  void* publisher_ = nullptr;
};

class Server final : public Answerer {
 public:
  using Answerer::Answerer;

 private:
  void create_ends() override {
    publisher_ = b_.session.create_publisher(node_, "pong");
    b_.session.create_subscriber(node_, "ping", &Server::on_ping, this);
  }

  // Publishes the payload back, untouched.
  static void on_ping(void* user, const rtm_message* message) {
    auto* self = static_cast<Server*>(user);
    const std::int64_t received_ns = self->b_.clock.now_ns();
    const std::int64_t sent_ns = self->b_.clock.now_ns();
    self->b_.session.publish(self->publisher_, *message);
    self->answered(*message, received_ns, sent_ns);
  }

  void* publisher_ = nullptr;
};

}  // namespace

std::unique_ptr<Measurement> make_roundtrip_client(Bench& bench) { return std::make_unique<Client>(bench); }
std::unique_ptr<Measurement> make_roundtrip_server(Bench& bench) { return std::make_unique<Server>(bench); }

}  // namespace rtmeter
