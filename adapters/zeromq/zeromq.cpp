// zeromq: ZeroMQ by its C interface, PUB and SUB: a socket a topic and end. Who publishes a topic binds, by
// TCP or IPC, and within its process by inproc; who hears it connects.
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "../common/session.hpp"
#include "rtmeter/adapter.hpp"

namespace {

using rtmeter::SetupError;

struct Options : rtmeter::OptionSet {
  rtmeter::Choice transport{
      *this, "transport", {"tcp", "ipc"}, "what carries messages; within a process inproc does"};
  rtmeter::Flag conflate{*this, "conflate",
                         "queues of one message, which the next replaces, in the place of the marks"};
  rtmeter::Text address{
      *this, "address",
      "of the server, by tcp: it binds there what it hears, too; by default who publishes binds"};
  rtmeter::Text endpoint{*this, "endpoint", "of the client: the server's sockets, as one with address says"};
};

const char* remedy_of(int error) {
  switch (error) {
    case EADDRNOTAVAIL:
    case ENODEV:
      return "give an IP address of this machine, such as 192.168.0.2 or [::1]";
    case EADDRINUSE:
      return "end whoever listens there, or start the run again";
    case ENAMETOOLONG:
      return "give the stage or the session a shorter name, or choose option transport=tcp";
    case EINVAL:
    case EPROTONOSUPPORT:
      return "give it as the server prints it";
    default:
      return "see ZeroMQ's manual of this call";
  }
}

// 0, or what ZeroMQ says of the failure as an error of that field.
void require(int result, const std::string& field, const std::string& value) {
  if (result == -1) throw SetupError(field, value, zmq_strerror(zmq_errno()), remedy_of(zmq_errno()));
}

template <int (*Close)(void*)>
struct Closed {
  void operator()(void* handle) const { Close(handle); }
};
using Context = std::unique_ptr<void, Closed<zmq_ctx_term>>;
using Socket = std::unique_ptr<void, Closed<zmq_close>>;

struct Subscriber {
  void* socket;
  rtm_on_message on_message;
  void* user;
};

class Zeromq final : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink) {
    int major = 0, minor = 0, patch = 0;
    zmq_version(&major, &minor, &patch);
    const auto version = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
    sink.put("name", "zeromq").put("version", "1");
    sink.put("middleware", "ZeroMQ").put("middleware_version", version).put("wire", "zeromq");
    for (const char* what : {"wakeup", "roundtrip", "cycle", "chain"}) sink.put("measures", what);
    for (const char* drive : {"sleep_then_spin_some", "poll"}) sink.put("drives.cycle", drive);
    sink.put("receives.chain", "spin_once");
    for (const char* what : {"subscribers", "publishers", "background_nodes"}) sink.put("beside", what);
    sink.put("components", "one_thread").put("same_host.transport", "ipc");
    sink.put("brings", "ZMQbg/*: the context's I/O threads, and the one that closes its sockets");
    Options().describe(sink);
  }

  explicit Zeromq(const rtm_run& run)
      : run_(run), context_(zmq_ctx_new()), wake_(eventfd(0, EFD_NONBLOCK)),
        timer_(run.measurement == RTM_CHAIN ? timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK) : wake_) {
    if (wake_ == -1 || timer_ == -1)
      throw SetupError("adapter", "eventfd", std::strerror(errno), "raise the limit of open files");
    items_.push_back({nullptr, wake_, ZMQ_POLLIN, 0});
    if (timer_ != wake_) items_.push_back({nullptr, timer_, ZMQ_POLLIN, 0});
    sockets_.emplace_back(zmq_socket(context_.get(), ZMQ_PAIR));  // threads come with the first socket
    if (run.measurement != RTM_WAKEUP) conflate_ = checked_conflate(run);
    if (run.measurement != RTM_ROUNDTRIP && run.measurement != RTM_CHAIN) return;
    ipc_ = Options().transport.of(run) == "ipc";
    if (ipc_ || run.measurement == RTM_CHAIN) return;
    if (run.role == RTM_ROLE_CLIENT) endpoint_ = Options().endpoint.of(run);
    if (run.role == RTM_ROLE_SERVER) address_ = Options().address.of(run);
    if (!endpoint_.empty() && endpoint_.find(',') == std::string::npos)
      throw SetupError("option endpoint", endpoint_, "is not where a server listens",
                       "start the server first and give the endpoint that it prints: PONG,PING");
  }
  ~Zeromq() override {
    if (timer_ != wake_) close(timer_);
    close(wake_);
  }

  void describe(rtmeter::Sink& sink) const override {
    if (run_.measurement == RTM_WAKEUP) return;
    sink.put("transport", run_.measurement == RTM_CYCLE ? "inproc" : ipc_ ? "ipc" : "tcp");
    sink.put("qos.reliability", reliable() ? "reliable" : "best_effort");
    sink.put("qos.history", conflate_ ? "keep_last" : reliable() ? "refuse_new" : "drop_new");
    sink.put("qos.depth", std::to_string(conflate_ ? 1 : depth()));
    if (!address_.empty()) sink.put_chosen("endpoint", endpoint_);
  }

  void* create_node(const std::string& name) override {
    node_ = name;
    return this;
  }
  void* create_publisher(void* /*node*/, const std::string& topic) override {
    void* socket = make(ZMQ_PUB, topic);
    const int yes = 1;
    if (reliable())
      require(zmq_setsockopt(socket, ZMQ_XPUB_NODROP, &yes, sizeof yes), "reliability", "reliable");
    if (run_.measurement != RTM_ROUNDTRIP) bind(socket, within(topic));
    own_.push_back(topic);
    if (run_.role == RTM_ROLE_BESIDE)
      bind(socket, place_of(topic + "/" + node_));
    else if (run_.role != RTM_ROLE_SINGLE)
      meet(socket, topic, true);
    return socket;
  }
  void* create_subscriber(void* /*node*/, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    void* socket = make(ZMQ_SUB, topic);
    require(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0), "topic", topic);
    const bool is_own = std::find(own_.begin(), own_.end(), topic) != own_.end();
    if (is_own || run_.role == RTM_ROLE_SINGLE)
      connect(socket, within(topic));
    else
      meet(socket, topic, false);
    for (int n = 2; topic == "ping" && n <= run_.publishers; ++n)
      connect(socket, place_of(topic + "/publisher" + std::to_string(n)));
    items_.push_back({socket, 0, ZMQ_POLLIN, 0});
    return &subscribers_.emplace_back(Subscriber{socket, on_message, user});
  }
  // The sequence number stands before the payload. A full queue: PUB drops it, or refuses it (NODROP).
  int publish(void* publisher, const rtm_message& m) override {
    zmq_msg_t message;
    if (zmq_msg_init_size(&message, sizeof m.sequence + m.bytes) == -1) return -1;
    auto* bytes = static_cast<std::uint8_t*>(zmq_msg_data(&message));
    std::memcpy(bytes, &m.sequence, sizeof m.sequence);
    std::memcpy(bytes + sizeof m.sequence, m.data, m.bytes);
    if (zmq_msg_send(&message, publisher, ZMQ_DONTWAIT) != -1) return 0;
    zmq_msg_close(&message);
    return -1;
  }

  int spin(std::int64_t timeout_ns) override {
    while (!dispatch(timeout_ns) && timeout_ns >= kForever) continue;
    return 0;
  }
  int wait(std::int64_t timeout_ns) override {
    dispatch(timeout_ns);
    return 0;
  }
  int spin_some() override { return wait(0); }
  void interrupt() override { eventfd_write(wake_, 1); }

 private:
  static constexpr std::int64_t kMs = 1'000'000, kForever = std::int64_t{1} << 60;

  bool reliable() const { return run_.reliability == RTM_RELIABLE; }
  // ZeroMQ's mark counts messages between two ends, sender's and receiver's each; its default is 1000.
  int depth() const { return run_.history_depth_asked > 0 ? run_.history_depth_asked : 1000; }
  static bool checked_conflate(const rtm_run& run) {
    if (!Options().conflate.of(run)) return false;
    const std::string instead = "leave one of the two out";
    if (run.reliability == RTM_RELIABLE)
      throw SetupError("reliability", "reliable", "a queue that replaces (conflate) refuses nothing",
                       instead);
    if (run.history_depth_asked > 1)
      throw SetupError("history_depth", std::to_string(run.history_depth_asked),
                       "a queue that replaces (conflate) holds one message", instead);
    return true;
  }

  void* make(int type, const std::string& topic) {
    sockets_.emplace_back(zmq_socket(context_.get(), type));
    void* socket = sockets_.back().get();
    if (socket == nullptr) require(-1, "topic", topic);
    const int none = 0, mark = depth(), conflate = conflate_;
    require(zmq_setsockopt(socket, ZMQ_SNDHWM, &mark, sizeof mark), "history_depth", std::to_string(mark));
    require(zmq_setsockopt(socket, ZMQ_RCVHWM, &mark, sizeof mark), "history_depth", std::to_string(mark));
    require(zmq_setsockopt(socket, ZMQ_CONFLATE, &conflate, sizeof conflate), "option conflate", "yes");
    require(zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none), "topic", topic);
    return socket;
  }
  static void bind(void* socket, const std::string& place) {
    require(zmq_bind(socket, place.c_str()), "session", place);
  }
  static void connect(void* socket, const std::string& place) {
    require(zmq_connect(socket, place.c_str()), "session", place);
  }
  // IPv6 is an address in brackets, and a socket that takes both would have IPv4 as a part of it.
  static void choose_family(void* socket, const std::string& place, const std::string& field) {
    const int is_6 = place.find('[') != std::string::npos;
    require(zmq_setsockopt(socket, ZMQ_IPV6, &is_6, sizeof is_6), field, place);
  }

  // Who publishes a topic binds where everybody of the session knows; on two hosts the server binds all.
  void meet(void* socket, const std::string& topic, bool publishes) {
    if (!endpoint_.empty() && run_.role == RTM_ROLE_CLIENT) {
      const std::string place = of_endpoint(topic);
      choose_family(socket, place, "option endpoint");
      return require(zmq_connect(socket, place.c_str()), "option endpoint", place);
    }
    if (address_.empty()) return (publishes ? bind : connect)(socket, place_of(topic));
    const bool bare_6 = address_.front() != '[' && address_.find(':') != std::string::npos;
    const std::string place = "tcp://" + (bare_6 ? "[" + address_ + "]" : address_) + ":*";
    choose_family(socket, place, "option address");
    require(zmq_bind(socket, place.c_str()), "option address", place);
    char bound[256];
    std::size_t size = sizeof bound;
    require(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &size), "topic", topic);
    endpoint_ += (endpoint_.empty() ? "" : ",") + std::string(bound);
  }
  // "PONG,PING": in the order in which the server makes them.
  std::string of_endpoint(const std::string& topic) const {
    const std::size_t comma = endpoint_.find(',');
    return topic == "pong" ? endpoint_.substr(0, comma) : endpoint_.substr(comma + 1);
  }
  static std::string within(const std::string& topic) { return "inproc://" + topic; }
  // Of this host, and nobody else's: an abstract Unix socket, or an address of the loopback network's and a
  // port.
  std::string place_of(const std::string& end) const {
    const std::string name = rtmeter_common::topic_name(run_, end);
    if (ipc_) return "ipc://@" + name;
    const std::uint32_t hash = rtmeter_common::hash_of(name);
    return "tcp://127." + std::to_string(hash >> 24) + "." + std::to_string(hash >> 16 & 255) + "." +
           std::to_string(hash % 254 + 1) + ":" + std::to_string(rtmeter_common::port_of(run_));
  }

  // Waits for a message, interrupt() or the timeout, and calls back for what is there then. True if it was
  // interrupted. zmq_poll counts milliseconds, rounded up here; stages of a chain have releases to the
  // nanosecond.
  bool dispatch(std::int64_t timeout_ns) {
    long left_ms = timeout_ns >= kForever ? -1 : static_cast<long>((timeout_ns + kMs - 1) / kMs);
    if (timer_ != wake_ && left_ms != 0) {
      itimerspec once{};  // for ever: never
      if (left_ms > 0)
        once.it_value = {static_cast<time_t>(timeout_ns / (1000 * kMs)),
                         static_cast<long>(timeout_ns % (1000 * kMs))};
      timerfd_settime(timer_, 0, &once, nullptr);
      left_ms = -1;
    }
    zmq_poll(items_.data(), static_cast<int>(items_.size()), left_ms);
    eventfd_t times = 0;
    const bool interrupted = (items_[0].revents & ZMQ_POLLIN) != 0 && eventfd_read(wake_, &times) == 0;
    for (const Subscriber& subscriber : subscribers_) receive(subscriber);
    return interrupted;
  }
  void receive(const Subscriber& subscriber) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    for (int n = 0; n < rtmeter::kBurst && zmq_msg_recv(&message, subscriber.socket, ZMQ_DONTWAIT) != -1;
         ++n) {
      if (zmq_msg_size(&message) < sizeof(rtm_message::sequence)) continue;  // somebody else's
      rtm_message m{0, static_cast<const std::uint8_t*>(zmq_msg_data(&message)) + sizeof m.sequence,
                    static_cast<std::uint32_t>(zmq_msg_size(&message) - sizeof m.sequence)};
      std::memcpy(&m.sequence, zmq_msg_data(&message), sizeof m.sequence);
      subscriber.on_message(subscriber.user, &m);
    }
    zmq_msg_close(&message);
  }

  const rtm_run& run_;
  const Context context_;  // ends after its sockets
  std::vector<Socket> sockets_;
  std::vector<zmq_pollitem_t> items_;
  std::deque<Subscriber> subscribers_;
  std::vector<std::string> own_;  // topics that this process publishes
  const int wake_, timer_;
  bool ipc_ = false, conflate_ = false;
  std::string node_, address_, endpoint_;
};

}  // namespace

RTMETER_ADAPTER_MAIN(Zeromq)
