// lcm: LCM by its C interface over udpm, UDP multicast. A topic is a channel whose name holds the session's;
// the measured thread sleeps on LCM's file descriptor and handles what is queued, as its manual shows.
#include <lcm/lcm.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "../common/receive_buffer.hpp"
#include "../common/session.hpp"
#include "rtmeter/adapter.hpp"

namespace {

using rtmeter::SetupError;

struct Options : rtmeter::OptionSet {
  rtmeter::Text url{*this, "url", "where LCM's messages go, udpm://239.255.76.67:7667?ttl=0 by default"};
};

struct Channel {
  std::string name;
  std::vector<std::uint8_t> message;  // of a publisher: grown before it is measured
  rtm_on_message on_message = nullptr;
  void* user = nullptr;
};

// LCM's other providers connect no two processes, or only through a broker, or write files.
std::string url_of(const rtm_run& run) {
  const std::string url = Options().url.of(run, "udpm://239.255.76.67:7667?ttl=0");
  if (url.compare(0, 7, "udpm://") == 0) return url;
  throw SetupError("option url", url, "is not of LCM's provider udpm, by which the adapter sends",
                   "give udpm://GROUP:PORT?ttl=N");
}

class Lcm final : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink) {
    const auto version = std::to_string(LCM_MAJOR_VERSION) + "." + std::to_string(LCM_MINOR_VERSION) + "." +
                         std::to_string(LCM_MICRO_VERSION);
    sink.put("name", "lcm").put("version", "1").put("wire", "lcm");
    sink.put("middleware", "LCM").put("middleware_version", version);
    for (const char* what : {"wakeup", "roundtrip", "cycle", "chain", "discovery"})
      sink.put("measures", what);
    for (const char* drive : {"sleep_then_spin_some", "poll"}) sink.put("drives.cycle", drive);
    for (const char* what : {"receives.chain", "receives.discovery"}) sink.put(what, "spin_once");
    sink.put("components", "one_thread");
    for (const char* what : {"subscribers", "publishers", "background_nodes"}) sink.put("beside", what);
    sink.put("brings", "rtmeter-probe-*: receives datagrams, and queues them; LCM does not name it");
    Options().describe(sink);
  }

  explicit Lcm(const rtm_run& run)
      : run_(run), url_(url_of(run)), lcm_(lcm_create(url_.c_str()), &lcm_destroy),
        wake_(eventfd(0, EFD_NONBLOCK)) {
    if (run.reliability == RTM_RELIABLE)
      throw SetupError("reliability", "reliable", "LCM does not repeat what is lost", "choose best_effort");
    if (wake_ == -1)
      throw SetupError("adapter", "eventfd", std::strerror(errno), "raise the limit of open files");
    // Its thread and sockets come with the first subscription, or with asking for the descriptor.
    if (lcm_ == nullptr || (fd_ = lcm_get_fileno(lcm_.get())) < 0)
      throw SetupError(
          "option url", url_, "LCM cannot be had there",
          "give a group and a port as udpm://GROUP:PORT?ttl=N, and the machine a route for multicast: "
          "ip link set lo multicast on; ip route add 224.0.0.0/4 dev lo");
  }
  ~Lcm() override { close(wake_); }

  void describe(rtmeter::Sink& sink) const override {
    if (run_.measurement == RTM_WAKEUP) return;
    sink.put("transport", "udpm").put("url", url_).put("qos.reliability", "best_effort");
    sink.put("qos.history", "drop_new").put("qos.depth", std::to_string(depth()));
    const std::string doubt = rtmeter_common::too_large_to_receive(run_.payload_bytes);
    if (!doubt.empty()) sink.put_chosen("discovery", "LCM has no connections" + doubt);
  }

  void* create_publisher(void* /*node*/, const std::string& topic) override {
    Channel& channel = channels_.emplace_back(Channel{name_of(topic), {}});
    channel.message.resize(sizeof(rtm_message::sequence) + run_.payload_bytes);
    return &channel;
  }
  void* create_subscriber(void* /*node*/, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    Channel& channel = channels_.emplace_back(Channel{name_of(topic), {}, on_message, user});
    const auto handle = [](const lcm_recv_buf_t* received, const char* /*name*/, void* its) {
      if (received->data_size < sizeof(rtm_message::sequence)) return;  // somebody else's
      rtm_message m{0, static_cast<const std::uint8_t*>(received->data) + sizeof m.sequence,
                    static_cast<std::uint32_t>(received->data_size - sizeof m.sequence)};
      std::memcpy(&m.sequence, received->data, sizeof m.sequence);
      const auto* subscriber = static_cast<const Channel*>(its);
      subscriber->on_message(subscriber->user, &m);
    };
    lcm_subscription_t* subscription = lcm_subscribe(lcm_.get(), channel.name.c_str(), handle, &channel);
    if (subscription == nullptr)
      throw SetupError("topic", topic, "LCM refuses the channel " + channel.name,
                       "see its messages in the cell's probe.stderr");
    lcm_subscription_set_queue_capacity(subscription, depth());
    return &channel;
  }
  // The sequence number stands before the payload.
  int publish(void* publisher, const rtm_message& m) override {
    auto* channel = static_cast<Channel*>(publisher);
    std::vector<std::uint8_t>& message = channel->message;
    message.resize(sizeof m.sequence + m.bytes);
    std::memcpy(message.data(), &m.sequence, sizeof m.sequence);
    std::memcpy(message.data() + sizeof m.sequence, m.data, m.bytes);
    const auto bytes = static_cast<unsigned>(message.size());
    return lcm_publish(lcm_.get(), channel->name.c_str(), message.data(), bytes);
  }

  int spin(std::int64_t timeout_ns) override {
    while (!dispatch(timeout_ns, 1) && timeout_ns >= kForever) continue;
    return 0;
  }
  int wait(std::int64_t timeout_ns) override {
    dispatch(timeout_ns, rtmeter::kBurst);
    return 0;
  }
  int spin_some() override { return wait(0); }
  void interrupt() override { eventfd_write(wake_, 1); }

 private:
  static constexpr std::int64_t kS = 1'000'000'000, kForever = std::int64_t{1} << 60;

  // Messages that wait for a subscription; more are dropped. LCM's default is 30.
  int depth() const { return run_.history_depth_asked > 0 ? run_.history_depth_asked : 30; }
  // LCM subscribes to longer names, and publishes none of them.
  std::string name_of(const std::string& topic) const {
    const std::string before = "rtmeter-" + std::string(run_.session) + "-";
    const auto most = LCM_MAX_CHANNEL_NAME_LENGTH - static_cast<long>(before.size());
    if (static_cast<long>(topic.size()) <= most) return before + topic;
    const std::string limit = "a channel of LCM's has a name of at most " +
                              std::to_string(LCM_MAX_CHANNEL_NAME_LENGTH) +
                              " characters, the session's among them";
    throw rtmeter_common::too_long(run_.measurement, run_.session, topic, most, limit);
  }

  // Waits for a message, interrupt() or the timeout, and handles up to so many that are queued then. True if
  // it was interrupted.
  bool dispatch(std::int64_t timeout_ns, int most) {
    pollfd sources[2] = {{fd_, POLLIN, 0}, {wake_, POLLIN, 0}};
    const timespec left{static_cast<time_t>(timeout_ns / kS), static_cast<long>(timeout_ns % kS)};
    if (ppoll(sources, 2, timeout_ns >= kForever ? nullptr : &left, nullptr) <= 0) return false;
    eventfd_t times = 0;
    const bool interrupted = (sources[1].revents & POLLIN) != 0 && eventfd_read(wake_, &times) == 0;
    for (int n = 0; (sources[0].revents & POLLIN) != 0;) {
      lcm_handle(lcm_.get());
      if (++n == most) break;
      sources[0].revents = 0;
      poll(sources, 1, 0);
    }
    return interrupted;
  }

  const rtm_run& run_;
  const std::string url_;
  const std::unique_ptr<lcm_t, void (*)(lcm_t*)> lcm_;
  const int wake_;
  int fd_ = -1;
  std::deque<Channel> channels_;
};

}  // namespace

RTMETER_ADAPTER_MAIN(Lcm)
