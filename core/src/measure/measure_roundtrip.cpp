// roundtrip: how long does ping-pong take, and does it come back in time?
#include <deque>

#include "measure/answerer.hpp"
#include "measure/asker.hpp"
#include "measure/kernel_stamps.hpp"
#include "measure/receipts.hpp"
#include "system/guard.hpp"

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

  void set_up() override {
    Base::set_up();
    if (!b_.config.beside || b_.clock.scripted()) return;
    know_all();
    if (further_subscribers() > 0 || further_publishers() > 0) greet_all();
  }
  Json facts() const override {
    Json facts = Base::facts();
    if (further_.empty()) return facts;
    facts["heard"] = Json::array();
    for (const Receipts& one : further_) facts["heard"].push(one.to_json());
    return facts;
  }

 private:
  using Base::b_, Base::node_, Base::payload_, Base::pending_, Base::stopped;

  void create_ends() override {
    if (kStamped) b_.session.tell_stamps(node_, &KernelStamps::on_stamp, &stamps_);
    publisher_ = b_.session.create_publisher(node_, "ping");
    b_.session.create_subscriber(node_, "pong", &Client::on_pong, this);
    if (!b_.clock.scripted()) return;
    for (int number = 1; b_.config.beside && number <= b_.config.beside->background_nodes; ++number)
      b_.session.create_node("background" + std::to_string(number));
    for (int number = 2; number <= 1 + further_publishers(); ++number)
      b_.session.create_publisher(b_.session.create_node(publication::name_of(number)), "ping");
    for (int number = 2; number <= 1 + further_subscribers();
         ++number) {  // who else is in processes of their own
      Receipts& one = further_.emplace_back(b_.config, number);
      b_.session.create_subscriber(b_.session.create_node(one.name()), "ping", &Client::on_ping_beside, &one);
    }
  }
  int further_publishers() const { return b_.config.beside ? b_.config.beside->publishers - 1 : 0; }
  int further_subscribers() const { return b_.config.beside ? b_.config.beside->subscribers - 1 : 0; }
  static void on_ping_beside(void* user, const rtm_message* message) {
    static_cast<Receipts*>(user)->take(*message);
  }

  // Until its middleware has found all who are there, where that tells how many it has.
  void know_all() {
    constexpr std::int64_t kAgain = 20'000'000;
    const std::int64_t wanted =
        b_.config.beside->subscribers + further_publishers() + b_.config.beside->background_nodes;
    const std::int64_t give_up_ns = b_.clock.now_ns() + b_.config.connect_timeout_ns;
    while (!stopped()) {
      const Json known = b_.session.describe();
      const Json* others = known.find("others");
      if (others == nullptr || std::stoll(others->as_string()) >= wanted) return;
      if (b_.clock.now_ns() >= give_up_ns)
        throw Failure("beside", std::to_string(wanted),
                      "are there, and the client's middleware has found " + others->as_string() + " within " +
                          std::to_string(b_.config.connect_timeout_ns / 1'000'000) + " ms",
                      "see the middleware's messages; give it more time (connect_timeout), or fewer of them");
      pass_time(kAgain);
    }
  }
  // All of it, whatever is answered meanwhile: a wait ends with each message.
  void pass_time(std::int64_t ns) noexcept {
    const std::int64_t until_ns = b_.clock.now_ns() + ns;
    for (std::int64_t now_ns; (now_ns = b_.clock.now_ns()) < until_ns && !stopped();)
      if (b_.receive == RTM_RECEIVE_LISTENER)
        b_.clock.sleep_until_ns(until_ns);
      else
        b_.session.wait(until_ns - now_ns);
  }

  // Until whoever started all processes says that each has heard it.
  void greet_all() {
    constexpr std::int64_t kAgain = 20'000'000;
    const std::int64_t give_up_ns = b_.clock.now_ns() + b_.config.connect_timeout_ns;
    while (told_to_go().load(std::memory_order_acquire) == 0 && !stopped()) {
      if (b_.clock.now_ns() >= give_up_ns)
        throw Failure(
            "beside",
            std::to_string(b_.config.beside->subscribers) + " x " + std::to_string(1 + further_publishers()),
            "not all subscribers have heard all publishers within " +
                std::to_string(b_.config.connect_timeout_ns / 1'000'000) + " ms, although the server answers",
            "see the middleware's messages; give it more time (connect_timeout), or fewer of them");
      greet_with(payload_.message(RTM_SEQUENCE_HELLO));
      pass_time(kAgain);
    }
  }
  std::string ends() const override { return "topics ping and pong"; }
  void transmit(const rtm_message& message) noexcept override {
    b_.session.publish(publisher_, message);
    if constexpr (kStamped) {
      const std::int64_t at_ns = stamps_.take(RTM_PUBLISHER);
      if (auto* slot = pending_.find(static_cast<std::int64_t>(message.sequence)))
        slot->set(kKernelSent, at_ns);
    }
  }
  bool greet_with(const rtm_message& message) noexcept override {
    const bool taken = b_.session.offer(publisher_, message);
    if constexpr (kStamped) stamps_.take(RTM_PUBLISHER);  // it has no slot
    return taken;
  }

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
  std::deque<Receipts> further_;  // subscribers, on a scripted clock
};

template <bool kStamped>
class Server final : public Answerer {
 public:
  explicit Server(Bench& bench) : Answerer(bench), publications_(bench.config) {}

  void run() noexcept override {
    Answerer::run();
    hear_out(publications_);
  }
  // Only further publishers: the client is answered.
  bool greeted() const override { return publications_.greeted(); }
  Json facts() const override {
    Json facts = Answerer::facts();
    if (publications_.expected()) facts["heard_of"] = publications_.to_json();
    return facts;
  }

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
    if (self->publications_.take(*message)) return;
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
  Publications publications_;
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
