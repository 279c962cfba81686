// request: how long does a call of a service take, or a goal given to an action, and is the answer in time?
#include "measure/answerer.hpp"
#include "measure/asker.hpp"

namespace rtmeter {
namespace {

enum Column : std::size_t { kRelease, kSent, kAccepted, kFirstFeedback, kReceived, kFree, kStatus, kColumns };

constexpr const char* kService = "echo";

class Client final : public Asker<kColumns, kSent, kReceived, kFree> {
 public:
  using Asker::Asker;

 private:
  void create_ends() override {
    client_ = b_.session.create_client(node_, kService, &Client::on_reply, this);
    const bool may_be_fed =
        b_.config.interface == RTM_ACTION && b_.session.describe().find("may_drop") == nullptr;
    fed_.store(!may_be_fed, std::memory_order_relaxed);
  }
  std::string ends() const override { return std::string(name_of(b_.config.interface)) + " " + kService; }
  void transmit(const rtm_message& message) noexcept override { b_.session.call(client_, message); }
  bool greet_with(const rtm_message& message) noexcept override {
    return b_.session.offer_call(client_, message);
  }
  bool heard_all() const noexcept override { return fed_.load(std::memory_order_acquire); }

  static void on_reply(void* user, rtm_reply what, const rtm_message* message) {
    auto* self = static_cast<Client*>(user);
    const std::int64_t now_ns = self->b_.clock.now_ns();
    if (what == RTM_RESULT)
      self->hear(*message, now_ns);
    else
      self->hear_of(what == RTM_ACCEPTED ? kAccepted : kFirstFeedback, message->sequence, now_ns);
  }

  // What comes before the result, once; what comes later is of a release that is settled. Measured path.
  void hear_of(Column column, std::uint64_t sequence, std::int64_t now_ns) noexcept {
    if (sequence == RTM_SEQUENCE_HELLO) {
      if (column != kFirstFeedback) return;
      fed_.store(true, std::memory_order_release);
      return answered_.notify();
    }
    Slot* s = pending_.find(static_cast<std::int64_t>(sequence));
    if (s == nullptr || !Ring::claim(*s)) return;
    if (s->at(column) == kAbsent) s->set(column, now_ns);
    Ring::settle(*s, State::outstanding);
  }

  void* client_ = nullptr;
  std::atomic<bool> fed_{false};  // a goal's feedback has come, by a topic of its own; or none ever may
};

class Server final : public Answerer {
 public:
  using Answerer::Answerer;

 private:
  void create_ends() override {
    server_ = b_.session.create_server(node_, kService, &Server::on_request, this);
  }

  // Gives the payload back, untouched; for a goal one feedback first.
  static void on_request(void* user, const rtm_message* message) {
    auto* self = static_cast<Server*>(user);
    const std::int64_t received_ns = self->b_.clock.now_ns();
    if (self->b_.config.interface == RTM_ACTION)
      self->b_.session.reply(self->server_, RTM_FEEDBACK, {message->sequence, message->data, 0});
    const std::int64_t sent_ns = self->b_.clock.now_ns();
    self->b_.session.reply(self->server_, RTM_RESULT, *message);
    self->answered(*message, received_ns, sent_ns);
  }

  void* server_ = nullptr;
};

}  // namespace

std::unique_ptr<Measurement> make_request_client(Bench& bench) { return std::make_unique<Client>(bench); }
std::unique_ptr<Measurement> make_request_server(Bench& bench) { return std::make_unique<Server>(bench); }

}  // namespace rtmeter
