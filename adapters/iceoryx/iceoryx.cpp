// The iceoryx adapter: publishers and subscribers over shared memory, untyped.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>

#include "iceoryx_hoofs/error_handling/error_handling.hpp"
#include "iceoryx_posh/popo/untyped_publisher.hpp"
#include "iceoryx_posh/popo/untyped_subscriber.hpp"
#include "iceoryx_posh/popo/user_trigger.hpp"
#include "iceoryx_posh/popo/wait_set.hpp"
#include "iceoryx_posh/runtime/node.hpp"
#include "iceoryx_posh/runtime/posh_runtime.hpp"
#include "iceoryx_versions.hpp"
#include "roudi.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_iceoryx {
namespace {

using iox::capro::IdString_t;
using std::chrono::steady_clock;

// What a chunk begins with; the payload follows.
struct Header {
  std::uint64_t sequence;
  std::uint32_t bytes;
};
constexpr std::uint32_t kPayload = 16;
static_assert(sizeof(Header) <= kPayload, "the payload follows");

std::string checked_session(const rtm_run& run) {
  if (std::strlen(run.session) > IdString_t::capacity())
    throw rtmeter::SetupError("session", run.session, "iceoryx's names are shorter",
                              "give at most " + std::to_string(IdString_t::capacity()) + " characters");
  return run.session;
}

iox::popo::PublisherOptions publisher_options(const rtm_run& run) {
  iox::popo::PublisherOptions options;
  options.subscriberTooSlowPolicy = run.reliability == RTM_RELIABLE
                                        ? iox::popo::ConsumerTooSlowPolicy::WAIT_FOR_CONSUMER
                                        : iox::popo::ConsumerTooSlowPolicy::DISCARD_OLDEST_DATA;
  return options;
}

iox::popo::SubscriberOptions subscriber_options(const rtm_run& run) {
  if (run.history_depth > iox::MAX_SUBSCRIBER_QUEUE_CAPACITY)
    throw rtmeter::SetupError("history_depth", std::to_string(run.history_depth),
                              "iceoryx's queues hold fewer messages",
                              "give at most " + std::to_string(iox::MAX_SUBSCRIBER_QUEUE_CAPACITY));
  iox::popo::SubscriberOptions options;
  options.queueCapacity = run.history_depth;
  options.queueFullPolicy = run.reliability == RTM_RELIABLE ? iox::popo::QueueFullPolicy::BLOCK_PRODUCER
                                                            : iox::popo::QueueFullPolicy::DISCARD_OLDEST_DATA;
  return options;
}

struct Publisher {
  Publisher(const std::string& topic_name, const iox::capro::ServiceDescription& service, const rtm_run& run)
      : topic(topic_name), port(service, publisher_options(run)) {}
  const std::string topic;
  iox::popo::UntypedPublisher port;
};

struct Subscriber {
  Subscriber(const iox::capro::ServiceDescription& service, const rtm_run& run, rtm_on_message callback,
             void* callback_user)
      : port(service, subscriber_options(run)), on_message(callback), user(callback_user) {}

  // Calls back with the next message, which lies where the sender wrote it. Measured path.
  bool take() noexcept {
    const auto taken = port.take();
    if (taken.has_error()) return false;
    const void* chunk = taken.value();
    const auto* header = static_cast<const Header*>(chunk);
    const rtm_message message{header->sequence, static_cast<const std::uint8_t*>(chunk) + kPayload,
                              header->bytes};
    on_message(user, &message);
    port.release(chunk);
    return true;
  }

  iox::popo::UntypedSubscriber port;
  rtm_on_message on_message;
  void* user;
};

class Iceoryx final : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink) {
    sink.put("name", "iceoryx").put("version", "1").put("wire", "iceoryx");
    sink.put("middleware", "Eclipse iceoryx").put("middleware_version", ICEORYX_LATEST_RELEASE_VERSION);
    for (const char* what : {"wakeup", "roundtrip", "cycle", "chain", "discovery"})
      sink.put("measures", what);
    sink.put("server", "same_host");
    sink.put("brings", "KeepAlive: tells RouDi that the process lives");
    sink.put("brings", "iox-watch: watches RouDi");
    for (const char* way : {"spin", "spin_once", "poll"}) sink.put("receives.roundtrip", way);
    for (const char* way : {"spin_once", "poll"}) sink.put("receives.cycle", way);
    for (const char* drive : {"sleep_then_spin_some", "poll"}) sink.put("drives.cycle", drive);
    for (const char* what : {"receives.chain", "receives.discovery"}) sink.put(what, "spin_once");
    sink.put("components", "one_thread");
    for (const char* what : {"subscribers", "publishers", "background_nodes"}) sink.put("beside", what);
  }

  // Ports are left to RouDi, which clears up what a process leaves; but a discovery's participants leave
  // while their process goes on. To give them back takes locks in shared memory, which nobody opens any more
  // if another process was killed while it held them.
  explicit Iceoryx(const rtm_run& run)
      : run_(run), session_(checked_session(run)), waits_(run.receive != RTM_RECEIVE_POLL) {
    const std::string name = "rtmeter-" + std::to_string(getpid());
    iox::runtime::PoshRuntime::initRuntime(iox::RuntimeName_t(iox::cxx::TruncateToCapacity, name));
    static const int once = on_exit(&end_in_time, nullptr);
    static_cast<void>(once);
    if (waits_) {
      ports_.wait_set.reset(new WaitSet);
      attach(ports_.wait_set->attachEvent(ports_.wake), "interrupt");
    }
  }

  ~Iceoryx() override {
    if (run_.measurement == RTM_DISCOVERY) delete &ports_;
  }

  void* create_node(const std::string& name) override {
    ports_.nodes.emplace_back(iox::NodeName_t(iox::cxx::TruncateToCapacity, name));
    return this;
  }

  void* create_publisher(void* /*node*/, const std::string& topic) override {
    ports_.publishers.emplace_back(topic, service(topic), run_);
    check_chunk(ports_.publishers.back().port);
    return &ports_.publishers.back();
  }

  void* create_subscriber(void* /*node*/, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    ports_.subscribers.emplace_back(service(topic), run_, on_message, user);
    Subscriber& subscriber = ports_.subscribers.back();
    if (waits_)
      attach(ports_.wait_set->attachState(subscriber.port, iox::popo::SubscriberState::HAS_DATA), topic);
    if (run_.measurement == RTM_CYCLE) await_subscriber(topic);
    return &subscriber;
  }

  void describe(rtmeter::Sink& sink) const override {
    const std::string pid = std::to_string(roudi_.pid());
    sink.put_chosen("roudi", (roudi_.ran_already() ? "ran already, process " : "started, process ") + pid);
    if (chunk_bytes_ > 0) sink.put("chunk_bytes", std::to_string(chunk_bytes_));
    if (!ports_.subscribers.empty()) {
      const bool reliable = run_.reliability == RTM_RELIABLE;
      sink.put("qos.reliability", reliable ? "reliable" : "best_effort");
      sink.put("qos.history", "keep_last").put("qos.depth", std::to_string(run_.history_depth));
      sink.put("qos.queue_full", reliable ? "wait_for_consumer" : "discard_oldest_data");
    }
    const std::string where =
        "RouDi (process " + pid + ") at /tmp/roudi, service rtmeter, instance " + session_;
    if (run_.measurement == RTM_DISCOVERY) sink.put_chosen("discovery", where);
    if (run_.measurement == RTM_ROUNDTRIP) {
      for (const Publisher& p : ports_.publishers)
        sink.put_chosen("discovery", where + ": found " + (p.port.hasSubscribers() ? "a" : "no") +
                                         " subscriber of " + p.topic);
    }
    if (roudi_.gone()) sink.put("broken", "iox-roudi (process " + pid + ") died while the run was measured");
  }

  int publish(void* publisher, const rtm_message& message) override {
    if (roudi_.gone()) return RTM_BROKEN;
    auto& port = static_cast<Publisher*>(publisher)->port;
    auto loan = port.loan(kPayload + message.bytes);
    if (loan.has_error()) return -1;
    void* chunk = loan.value();
    auto* header = static_cast<Header*>(chunk);
    header->sequence = message.sequence;
    header->bytes = message.bytes;
    std::memcpy(static_cast<std::uint8_t*>(chunk) + kPayload, message.data, message.bytes);
    port.publish(chunk);
    return 0;
  }

  int spin(std::int64_t timeout_ns) override { return run(timeout_ns, false); }
  int wait(std::int64_t timeout_ns) override { return run(timeout_ns, true); }
  int spin_some() override {
    take_all();
    return result();
  }
  void interrupt() override {
    interrupted_.store(true);
    if (waits_) ports_.wake.trigger();
  }

 private:
  using WaitSet = iox::popo::WaitSet<>;  // of iceoryx's own size: 256

  struct Ports {
    std::deque<iox::runtime::Node> nodes;
    std::deque<Publisher> publishers;
    std::deque<Subscriber> subscribers;
    iox::popo::UserTrigger wake;
    std::unique_ptr<WaitSet> wait_set;
  };

  static Roudi& roudi_of_process(std::uint32_t chunk_bytes) {
    static Roudi roudi(chunk_bytes);
    return roudi;
  }

  // iceoryx takes its leave of RouDi when the process exits, and waits for ever if RouDi hangs.
  static void end_in_time(int status, void* /*unused*/) {
    static int exit_status;
    exit_status = status;
    std::signal(SIGALRM, [](int) { _exit(exit_status); });
    alarm(5);
  }

  template <typename Result>
  static void attach(const Result& result, const std::string& topic) {
    if (result.has_error())
      throw rtmeter::SetupError(
          "topic", topic, "iceoryx's wait-set takes no more than " + std::to_string(WaitSet::capacity()),
          "have stages that hear fewer topics in one process");
  }

  iox::capro::ServiceDescription service(const std::string& topic) const {
    return {IdString_t("rtmeter"), IdString_t(iox::cxx::TruncateToCapacity, session_),
            IdString_t(iox::cxx::TruncateToCapacity, topic)};
  }

  rtmeter::SetupError no_chunk() const {
    const std::uint32_t largest = roudi_.largest_chunk();
    std::string why = ", as whoever started it configured it";
    std::string remedy = "choose a smaller payload, end that RouDi, or give it larger chunks";
    if (largest != 0) {
      const bool shared = kPayload + run_.payload_bytes <= kLargestChunk;
      why = (shared ? ", which another run of rtmeter uses" : "") + std::string(": the largest carries ") +
            std::to_string((shared ? largest : kLargestChunk) >> 20U) + " MiB and 48 bytes";
      remedy = "choose a smaller payload, or ";
      remedy += shared ? "measure when that run has ended" : "start iox-roudi with larger chunks";
    }
    return {"payload_bytes", std::to_string(run_.payload_bytes), "RouDi has no chunk of memory for it" + why,
            remedy};
  }

  // Borrows the largest chunk that the run will want: on the measured path a refusal would come too late.
  void check_chunk(iox::popo::UntypedPublisher& port) {
    const auto result_only = iox::ErrorHandler::setTemporaryErrorHandler(
        [](const iox::Error, const std::function<void()>&, const iox::ErrorLevel) {});
    auto loan = port.loan(kPayload + run_.payload_bytes);
    if (loan.has_error()) throw no_chunk();
    chunk_bytes_ = iox::mepoo::ChunkHeader::fromUserPayload(loan.value())->chunkSize();
    port.release(loan.value());
  }

  // RouDi brings ends together within a tenth of a second; in one process that has to be over before the
  // first request.
  void await_subscriber(const std::string& topic) const {
    const auto give_up = steady_clock::now() + std::chrono::seconds(20);
    for (const Publisher& publisher : ports_.publishers)
      while (publisher.topic == topic && !publisher.port.hasSubscribers()) {
        if (roudi_.gone() || steady_clock::now() > give_up)
          throw rtmeter::SetupError("iox-roudi", std::to_string(roudi_.pid()),
                                    "it does not bring together the ends of topic " + topic,
                                    "see whether it runs, and what it prints");
        usleep(1000);
      }
  }

  int take_all() noexcept {
    int callbacks = 0;
    for (Subscriber& subscriber : ports_.subscribers)
      while (callbacks < rtmeter::kBurst && subscriber.take()) ++callbacks;
    return callbacks;
  }

  int run(std::int64_t timeout_ns, bool once) noexcept {
    return waits_ ? run_wait_set(timeout_ns, once) : run_polling(timeout_ns, once);
  }

  int run_wait_set(std::int64_t timeout_ns, bool once) noexcept {
    constexpr std::int64_t kHour = 3600000000000;  // longer is for ever
    for (bool ended = false; !ended;) {
      const auto found = timeout_ns > kHour
                             ? ports_.wait_set->wait()
                             : ports_.wait_set->timedWait(iox::units::Duration::fromNanoseconds(timeout_ns));
      ended = once || found.empty();
      for (const auto* one : found)
        for (Subscriber& subscriber : ports_.subscribers)
          if (one->doesOriginateFrom(&subscriber.port)) subscriber.take();
      if (interrupted_.exchange(false) || roudi_.gone()) ended = true;
    }
    return result();
  }

  // The clock is only looked at now and then, to see the timeout.
  int run_polling(std::int64_t timeout_ns, bool once) noexcept {
    constexpr unsigned kLook = 256;
    const auto start = steady_clock::now();
    for (unsigned n = 1;; ++n) {
      if (take_all() > 0 && once) break;
      if (interrupted_.load(std::memory_order_relaxed) && interrupted_.exchange(false)) break;
      if (roudi_.gone()) break;
      if (n % kLook == 0 && steady_clock::now() - start >= std::chrono::nanoseconds(timeout_ns)) break;
    }
    return result();
  }

  int result() const noexcept { return roudi_.gone() ? RTM_BROKEN : 0; }

  const rtm_run run_;
  const std::string session_;
  const bool waits_;
  Roudi& roudi_ = roudi_of_process(kPayload + run_.payload_bytes);
  std::uint32_t chunk_bytes_ = 0;
  std::atomic<bool> interrupted_{false};
  Ports& ports_ = *new Ports;
};

}  // namespace
}  // namespace rtmeter_iceoryx

RTMETER_ADAPTER_MAIN(rtmeter_iceoryx::Iceoryx)
