// The ROS 1 adapter, over roscpp.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <ros/callback_queue.h>
#include <ros/ros.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../common/receive_buffer.hpp"
#include "../common/session.hpp"
#include "carriers.hpp"
#include "connections.hpp"
#include "master.hpp"
#include "message.hpp"
#include "options.hpp"
#include "rtmeter/adapter.hpp"
#include "rtmeter/event_count.hpp"
#include "services.hpp"
#include "timers.hpp"

namespace rtmeter_ros1 {
namespace {

using MessagePointer = boost::shared_ptr<Message>;

struct Publisher {
  std::string topic;
  ros::Publisher port;
  std::vector<MessagePointer> pool;  // a message is free again when nobody else holds it
};

struct Wake final : ros::CallbackInterface {
  CallResult call() override { return Success; }
};

class Ros1 final : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink) {
    sink.put("name", "ros1").put("version", "1").put("middleware", "ROS 1, roscpp").put("wire", "ros1");
    sink.put("middleware_version", std::to_string(ROS_VERSION_MAJOR) + "." +
                                       std::to_string(ROS_VERSION_MINOR) + "." +
                                       std::to_string(ROS_VERSION_PATCH));
    for (const char* what : {"wakeup", "timer.one_shot", "timer.periodic", "roundtrip", "request", "cycle",
                             "chain", "discovery"})
      sink.put("measures", what);
    for (const char* what : {"receives.chain", "receives.discovery"}) sink.put(what, "spin_once");
    sink.put("matches", "publisher");
    for (const char* what : {"subscribers", "publishers", "background_nodes"}) sink.put("beside", what);
    sink.put("interfaces", "service");
    sink.put("receives.request", "call");  // ros::ServiceClient has no other way
    for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.timer", drive);
    for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.cycle", drive);
    sink.put("components", "one_thread");
    sink.put("brings", "rtmeter-probe-*: roscpp's: XML-RPC, sockets, timers, log, spinners; it names none");
    sink.put("brings", "ros-watch: watches the master");
    for (const char* way : {"spin", "spin_once", "listener", "poll"}) sink.put("receives.roundtrip", way);
    for (const char* way : {"spin", "spin_once", "listener", "poll"}) sink.put("receives.cycle", way);
    for (const char* what : {"timer", "roundtrip", "request"}) sink.put("background", what);
    kOptions.describe(sink);
  }

  explicit Ros1(const rtm_run& run)
      : run_(run), kind_(spinner_of(run)), async_(kind_ == "async"), threads_(spinner_threads(run, kind_)) {
    if (run.measurement == RTM_TIMER || (run.measurement == RTM_CYCLE && run.drive == RTM_SPIN))
      timer_ = kOptions.timer.of(run);
    if (run.measurement == RTM_ROUNDTRIP || all_agree(run)) transport_ = checked_transport(run);
    if (run.measurement == RTM_REQUEST) persistent_ = checked_service(run);
    if (async_ && run.measurement == RTM_TIMER && run.drive != RTM_SPIN)
      throw rtmeter::SetupError("drive", run.drive == RTM_POLL ? "poll" : "sleep_then_spin_some",
                                "an AsyncSpinner calls back itself: there is nothing to spin",
                                "leave out the drive, or choose option spinner=single");
    const std::string address = kOptions.interface.of(run);
    in_addr parsed{};
    if (!address.empty() && inet_pton(AF_INET, address.c_str(), &parsed) != 1)
      throw kOptions.interface.error(address, "this is no IPv4 address",
                                     "give the address of this end that the other reaches");
    master_ = all_agree(run) ? Master::of_process(run, address) : std::make_shared<Master>(run, address);
    ros::M_string settings{{"__master", master_->uri()}};
    const bool one_host = master_->uri().find("//127.0.0.1:") != std::string::npos;
    if (!address.empty())
      settings["__ip"] = address;
    else if (one_host && std::getenv("ROS_IP") == nullptr && std::getenv("ROS_HOSTNAME") == nullptr)
      settings["__ip"] = "127.0.0.1";
    const char* role = run.role == RTM_ROLE_CLIENT   ? "client"
                       : run.role == RTM_ROLE_SERVER ? "server"
                                                     : "one";
    std::string name = rtmeter_common::topic_name(run, role);
    if (all_agree(run) || run.role == RTM_ROLE_BESIDE) name += "_" + std::to_string(getpid());
    for (char& c : name)
      if (c == '/') c = '_';
    ros::init(settings, name, ros::init_options::NoSigintHandler);
    ros::master::setRetryTimeout(ros::WallDuration(5));
    queue_ = ros::getGlobalCallbackQueue();
  }

  ~Ros1() override {
    spinner_.reset();
    timers_.clear();
    clients_.clear();
    servers_.clear();
    subscribers_.clear();
    publishers_.clear();
    node_.reset();
    ros::shutdown();
  }

  // ROS 1 has one node a process: components share it.
  void* create_node(const std::string& /*name*/) override {
    if (node_ == nullptr) {
      node_.reset(new ros::NodeHandle);
      if (async_) spinner_.reset(new ros::AsyncSpinner(1));
      if (async_) spinner_->start();
    }
    return this;
  }

  void* create_timer(void* /*node*/, const rtm_timer_spec& spec, rtm_timer_traits& traits) override {
    const bool one_shot = spec.mode == RTM_ONE_SHOT;
    if (timer_ == "SteadyTimer")
      keep<ros::WallDuration>(
          node_->createSteadyTimer(duration<ros::WallDuration>(spec.period_ns),
                                   callback<ros::SteadyTimerEvent>(spec), one_shot, false),
          spec);
    else if (timer_ == "WallTimer")
      keep<ros::WallDuration>(node_->createWallTimer(duration<ros::WallDuration>(spec.period_ns),
                                                     callback<ros::WallTimerEvent>(spec), one_shot, false),
                              spec);
    else
      keep<ros::Duration>(node_->createTimer(duration<ros::Duration>(spec.period_ns),
                                             callback<ros::TimerEvent>(spec), one_shot, false),
                          spec);
    traits.ticks = RTM_JUMPS;  // a timer that is more than a period late starts anew
    traits.overrun = RTM_SKIP;
    traits.reports_monotonic = timer_ == "SteadyTimer" ? 1 : 0;  // the others report the time of day
    return timers_.back().get();
  }
  int arm(void* timer, std::int64_t /*now_ns*/) override {
    static_cast<Timer*>(timer)->arm();
    return 0;
  }

  // Called back by the queue, as messages are.
  void watch(void* /*node*/, rtm_on_match on_match, void* user) override {
    told_ = [this, on_match, user](const ros::SingleSubscriberPublisher& end, int change) {
      if (end.getSubscriberName() == ros::this_node::getName()) return;
      others_ += change;
      on_match(user, RTM_PUBLISHER, others_);
    };
  }

  void* create_publisher(void* /*node*/, const std::string& topic) override {
    publishers_.emplace_back();
    Publisher& publisher = publishers_.back();
    publisher.topic = topic;
    publisher.port = node_->advertise<Message>(full_name(topic), run_.history_depth, of_subscribers(1),
                                               of_subscribers(-1));
    for (std::uint32_t i = 0; i < run_.history_depth + 2; ++i) {
      publisher.pool.push_back(boost::make_shared<Message>());
      publisher.pool.back()->payload.resize(run_.payload_bytes);
    }
    return &publisher;
  }

  void* create_subscriber(void* /*node*/, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    ros::TransportHints hints;
    if (transport_ == "udp")
      hints.udp();
    else
      hints.tcp().tcpNoDelay(transport_ == "tcp_nodelay");
    const boost::function<void(const boost::shared_ptr<Message const>&)> callback =
        [this, on_message, user](const boost::shared_ptr<Message const>& m) {
          const rtm_message message{m->number, m->payload.data(),
                                    static_cast<std::uint32_t>(m->payload.size())};
          on_message(user, &message);
          if (async_) called_.notify();
        };
    subscribers_.push_back(node_->subscribe<Message>(full_name(topic), run_.history_depth, callback,
                                                     ros::VoidConstPtr(), hints));
    if (run_.measurement == RTM_CYCLE) await_subscriber(topic);
    return &subscribers_.back();
  }

  int publish(void* publisher_pointer, const rtm_message& message) override {
    if (master_->gone()) return RTM_BROKEN;
    auto* publisher = static_cast<Publisher*>(publisher_pointer);
    for (MessagePointer& free : publisher->pool) {
      if (!free.unique()) continue;
      free->number = message.sequence;
      free->payload.resize(message.bytes);
      std::memcpy(free->payload.data(), message.data, message.bytes);
      publisher->port.publish(free);
      return 0;
    }
    return -1;
  }

  void* create_client(void* /*node*/, const std::string& service, rtm_on_reply on_reply,
                      void* user) override {
    clients_.emplace_back(*node_, full_name(service), persistent_, on_reply, user);
    return &clients_.back();
  }
  void* create_server(void* /*node*/, const std::string& service, rtm_on_message on_request,
                      void* user) override {
    servers_.emplace_back(*node_, full_name(service), on_request, user);
    return &servers_.back();
  }
  int call(void* client, const rtm_message& request) override {
    if (master_->gone()) return RTM_BROKEN;
    return static_cast<Client*>(client)->call(request) ? 0 : result_or(-1);
  }
  int reply(void* server, rtm_reply /*what*/, const rtm_message& message) override {
    static_cast<Server*>(server)->reply(message);
    return 0;
  }

  // The loop of ros::spin(), which itself only ends with the node.
  int spin(std::int64_t /*timeout_ns*/) override {
    if (async_) return wait_for_interrupt();
    if (kind_ == "multi_threaded") return spin_multi_threaded();
    while (!interrupted_.exchange(false) && !master_->gone()) queue_->callAvailable(ros::WallDuration(0.1));
    return result();
  }
  int wait(std::int64_t timeout_ns) override {
    if (async_) return wait_for_spinner(timeout_ns);
    if (interrupted_.exchange(false)) return 0;
    queue_->callOne(duration<ros::WallDuration>(timeout_ns));
    return result();
  }
  int spin_some() override {
    ros::spinOnce();
    return result();
  }
  void interrupt() override {
    interrupted_.store(true);
    called_.notify();
    ended_.notify();
    if (!async_) queue_->addCallback(boost::make_shared<Wake>());
    for (const Client& client : clients_) client.give_up();
  }

  void describe(rtmeter::Sink& sink) const override {
    const std::string where = master_->uri() + " (process " + std::to_string(master_->pid()) + ")";
    sink.put_chosen("master", (master_->is_ours() ? "started, " : "ran already, ") + where);
    if (run_.role == RTM_ROLE_SERVER) sink.put_chosen("endpoint", master_->uri());
    sink.put("spinner", kind_);
    if (!timer_.empty())
      sink.put("timer", timer_).put("reported_clock", timer_ == "SteadyTimer" ? "monotonic" : "time_of_day");
    if (!transport_.empty()) describe_transport(sink, where);
    if (run_.measurement == RTM_REQUEST)
      sink.put("transport", "tcp")
          .put("persistent", persistent_ ? "yes" : "no")
          .put("qos.reliability", "reliable");
    if (!clients_.empty()) {
      const bool is_there = ros::service::exists(clients_.front().service(), false);
      sink.put_chosen("discovery", "rosmaster at " + where + ": " + clients_.front().service() +
                                       (is_there ? " is there" : " is not there"));
    }
    if (!subscribers_.empty()) describe_connections(sink);
    if (!subscribers_.empty())
      sink.put("qos.history", "keep_last").put("qos.depth", std::to_string(run_.history_depth));
    if (master_->gone()) sink.put("broken", "rosmaster at " + where + " died while the run was measured");
  }

 private:
  // Who calls back. Of messages, `receive` decides; the option says which spinner spins.
  static std::string spinner_of(const rtm_run& run) {
    const auto choose = [&run](const std::vector<std::string>& possible) {
      return kOptions.spinner.of(run, possible);
    };
    if (run.measurement == RTM_TIMER || run.measurement == RTM_WAKEUP) return choose({"single", "async"});
    if (run.receive == RTM_RECEIVE_LISTENER) return choose({"async"});
    if (run.receive == RTM_RECEIVE_SPIN) return choose({"single", "multi_threaded"});
    return choose({"single"});
  }
  static std::uint32_t spinner_threads(const rtm_run& run, const std::string& kind) {
    if (kind != "multi_threaded") return 0;
    return static_cast<std::uint32_t>(kOptions.spinner_threads.of(run, 0));
  }

  ros::SubscriberStatusCallback of_subscribers(int change) const {
    if (!told_) return {};
    return [told = told_, change](const ros::SingleSubscriberPublisher& end) { told(end, change); };
  }

  std::string full_name(const std::string& topic) const {
    return "/" + rtmeter_common::topic_name(run_, topic);
  }

  template <typename Event>
  boost::function<void(const Event&)> callback(const rtm_timer_spec& spec) {
    return [this, spec](const Event& event) {
      const rtm_fire fire{static_cast<std::int64_t>(event.current_expected.toNSec()),
                          static_cast<std::int64_t>(event.current_real.toNSec())};
      spec.on_fire(spec.user, &fire);
      if (async_) called_.notify();
    };
  }
  template <typename Duration, typename RosTimer>
  void keep(RosTimer timer, const rtm_timer_spec& spec) {
    timers_.emplace_back(new TimerOf<RosTimer, Duration>(timer, spec, async_));
  }

  // Ends of one process find each other by way of the master; that has to be over before the first request.
  void await_subscriber(const std::string& topic) const {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (const Publisher& publisher : publishers_)
      while (publisher.topic == topic && publisher.port.getNumSubscribers() == 0) {
        if (master_->gone() || std::chrono::steady_clock::now() > give_up)
          throw rtmeter::SetupError("rosmaster", master_->uri(),
                                    "it does not bring together the ends of topic " + topic,
                                    "see whether it runs, and what it prints");
        usleep(1000);
      }
  }

  void describe_transport(rtmeter::Sink& sink, const std::string& where) const {
    sink.put("transport", transport_);
    sink.put("qos.reliability", transport_ == "udp" ? "best_effort" : "reliable");
    std::string found;
    if (transport_ == "udp") found = rtmeter_common::too_large_to_receive(run_.payload_bytes);
    for (const Publisher& one : publishers_)
      found +=
          ", " + std::to_string(one.port.getNumSubscribers()) + " subscribers of " + full_name(one.topic);
    for (const ros::Subscriber& one : subscribers_)
      found += ", " + std::to_string(one.getNumPublishers()) + " publishers of " + one.getTopic();
    sink.put_chosen("discovery", "rosmaster at " + where + ": found" + found);
  }

  // What ros::MultiThreadedSpinner does, which itself only ends with the node.
  int spin_multi_threaded() {
    ros::AsyncSpinner spinner(threads_);  // its destructor stops it
    spinner.start();
    return wait_for_interrupt();
  }
  // Callbacks that ran since the last call count.
  int wait_for_spinner(std::int64_t timeout_ns) noexcept {
    if (called_.ticket() == heard_ && called_.wait(heard_, timeout_ns) != 0) return -1;
    heard_ = called_.ticket();
    return result();
  }
  // No callback wakes this thread; it looks after the master now and then, as spin() does otherwise.
  int wait_for_interrupt() noexcept {
    constexpr std::int64_t kLook = 100000000;
    std::uint32_t ticket = ended_.ticket();
    for (; !interrupted_.exchange(false) && !master_->gone(); ticket = ended_.ticket())
      if (ended_.wait(ticket, kLook) != 0) return -1;
    return result();
  }

  int result() const noexcept { return result_or(0); }
  int result_or(int otherwise) const noexcept { return master_->gone() ? RTM_BROKEN : otherwise; }

  const rtm_run run_;
  const std::string kind_;  // of spinner
  const bool async_;
  const std::uint32_t threads_;
  std::string timer_, transport_;
  std::shared_ptr<Master> master_;
  std::function<void(const ros::SingleSubscriberPublisher&, int)> told_;  // of a watched node
  std::int32_t others_ = 0;                                               // subscribers of other nodes
  ros::CallbackQueue* queue_ = nullptr;
  std::unique_ptr<ros::NodeHandle> node_;
  std::unique_ptr<ros::AsyncSpinner> spinner_;
  std::vector<std::unique_ptr<Timer>> timers_;
  std::deque<Publisher> publishers_;
  std::deque<ros::Subscriber> subscribers_;
  bool persistent_ = false;  // a client's connection
  std::deque<Client> clients_;
  std::deque<Server> servers_;
  std::atomic<bool> interrupted_{false};
  rtmeter::ThreadEventCount called_{};  // notified when a callback ran, for wait()
  rtmeter::ThreadEventCount ended_{};   // notified when spin() shall return
  std::uint32_t heard_ = 0;             // ticket of called_ that was served
};

}  // namespace
}  // namespace rtmeter_ros1

RTMETER_ADAPTER_MAIN(rtmeter_ros1::Ros1)
