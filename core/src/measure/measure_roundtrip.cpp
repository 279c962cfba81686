// roundtrip: how long does ping-pong take, and does it come back in time?
#include "measure/answerer.hpp"
#include "measure/asker.hpp"
#include "measure/kernel_stamps.hpp"

namespace rtmeter {
namespace {

enum Column : std::size_t { kRelease, kSent, kReceived, kFree, kKernelSent, kKernelReceived };

// stamped: with the kernel's stamps of each message.
constexpr std::size_t columns(bool stamped) { return stamped ? 7 : 5; }

template <bool kStamped>
class Client final : public Asker<columns(kStamped), kSent, kReceived, kFree> {
  using Base = Asker<columns(kStamped), kSent, kReceived, kFree>;

 public:
  using Base::Base;

 private:
  using Base::b_, Base::node_, Base::pending_;

  void create_ends() override {
    if (kStamped) b_.session.tell_stamps(node_, &KernelStamps::on_stamp, &stamps_);
    publisher_ = b_.session.create_publisher(node_, "ping");
    b_.session.create_subscriber(node_, "pong", &Client::on_pong, this);
  }
  std::string ends() const override { return "topics ping and pong"; }
  void transmit(const rtm_message& message) noexcept override {
    b_.session.publish(publisher_, message);
    if constexpr (kStamped) {
      const std::int64_t at_ns = stamps_.take(RTM_PUBLISHER);  // also of a greeting, which has no slot
      if (auto* slot = pending_.find(static_cast<std::int64_t>(message.sequence)))
        slot->set(kKernelSent, at_ns);
    }
  }
  void greet_with(const rtm_message& message) noexcept override { transmit(message); }

  static void on_pong(void* user, const rtm_message* message) {
    auto* self = static_cast<Client*>(user);
    const std::int64_t now_ns = self->b_.clock.now_ns();
    if constexpr (kStamped)
      self->hear(*message, now_ns, {kKernelReceived, self->stamps_.take(RTM_SUBSCRIBER)});
    else
      self->hear(*message, now_ns);
  }

  void* publisher_ = nullptr;
  KernelStamps stamps_;
};

template <bool kStamped>
class Server final : public Answerer {
 public:
  using Answerer::Answerer;

 private:
  void create_ends() override {
    if (kStamped) b_.session.tell_stamps(node_, &KernelStamps::on_stamp, &stamps_);
    publisher_ = b_.session.create_publisher(node_, "pong");
    b_.session.create_subscriber(node_, "ping", &Server::on_ping, this);
  }

  // Publishes the payload back, untouched.
  static void on_ping(void* user, const rtm_message* message) {
    auto* self = static_cast<Server*>(user);
    const std::int64_t received_ns = self->b_.clock.now_ns();
    const std::int64_t sent_ns = self->b_.clock.now_ns();
    self->b_.session.publish(self->publisher_, *message);
    if constexpr (kStamped)
      self->answered(*message, received_ns, sent_ns, self->stamps_.take(RTM_SUBSCRIBER),
                     self->stamps_.take(RTM_PUBLISHER));
    else
      self->answered(*message, received_ns, sent_ns);
  }

  void* publisher_ = nullptr;
  KernelStamps stamps_;
};

}  // namespace

std::unique_ptr<Measurement> make_roundtrip_client(Bench& bench) {
  if (bench.config.kernel_stamps) return std::make_unique<Client<true>>(bench);
  return std::make_unique<Client<false>>(bench);
}
std::unique_ptr<Measurement> make_roundtrip_server(Bench& bench) {
  if (bench.config.kernel_stamps) return std::make_unique<Server<true>>(bench);
  return std::make_unique<Server<false>>(bench);
}

}  // namespace rtmeter
