// The ROS 2 adapter, over rclcpp.
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <string>
#include <thread>
#include <vector>

#include "../common/ros/installation.hpp"
#include "../common/ros/rmw.hpp"
#include "background_executor.hpp"
#include "executors.hpp"
#include "options.hpp"
#include "ports.hpp"
#include "requests.hpp"
#include "rtmeter/adapter.hpp"
#include "timer.hpp"

namespace rtmeter_ros2 {
namespace {

using std::chrono::nanoseconds;

// How the run spins: by which executor, which of its calls, and what that executor has to serve.
struct Spinning {
  explicit Spinning(const rtm_run& run)
      : executor(executor_of(run)), threads(executor_threads(run, executor)), call(call_of(run)),
        own_group(kOptions.own_group.of(run)) {}

  // The option is asked for where more than one call can be: otherwise the core refuses it.
  static std::string call_of(const rtm_run& run) {
    const bool is_timer = run.measurement == RTM_TIMER;
    if (is_timer && run.drive == RTM_SPIN)
      return run.timer_mode == RTM_ONE_SHOT ? "spin_once" : kOptions.spin.of(run, {"spin", "spin_once"});
    if (is_timer || run.receive == RTM_RECEIVE_POLL)
      return kOptions.spin.of(run, {"spin_some", "spin_all", "spin_once"});
    return run.receive == RTM_RECEIVE_SPIN ? "spin" : "spin_once";
  }

  std::string executor;
  std::size_t threads;
  std::string call;
  bool own_group;
};

// Before anything of ROS's is called: which RMW is loaded, and whether it is the right ROS 2.
const rtm_run& prepared(const rtm_run& run) {
  if (rtmeter_common::environment("AMENT_PREFIX_PATH").empty())
    throw rtmeter::SetupError("AMENT_PREFIX_PATH", "", "no ROS 2 is sourced",
                              "source the setup.bash of the ROS 2 that rtmeter was built with");
  rtmeter_ros::check_installation("rclcpp", RTMETER_RCLCPP_VERSION);
  rtmeter_ros::load_rmw(run, kOptions);
  return run;
}

// Whether a round trip's client has its server beside it. Elsewhere the option is refused, unread.
bool inline_of(const rtm_run& run) {
  return run.measurement == RTM_ROUNDTRIP && kOptions.inline_server.of(run) && run.role == RTM_ROLE_CLIENT;
}

// rclcpp has one default context a process: a second adapter's node is one more of it.
class Init {
 public:
  static std::shared_ptr<Init> of_process(std::size_t domain) {
    static std::weak_ptr<Init> known;
    std::shared_ptr<Init> init = known.lock();
    if (init == nullptr) known = init = std::make_shared<Init>(domain);
    return init;
  }
  explicit Init(std::size_t domain) {
    rclcpp::InitOptions options;
    options.set_domain_id(domain);
    rclcpp::init(0, nullptr, options, rclcpp::SignalHandlerOptions::None);
  }
  Init(const Init&) = delete;
  Init& operator=(const Init&) = delete;
  ~Init() { rclcpp::shutdown(); }
};

class Ros2 final : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink) {
    sink.put("name", "ros2").put("version", "1").put("middleware", "ROS 2, rclcpp");
    const std::string loaded = rtmeter_ros::loaded_version("rclcpp", "librclcpp.so");
    sink.put("middleware_version", loaded.empty() ? RTMETER_RCLCPP_VERSION : loaded);
    for (const char* what :
         {"wakeup", "timer.one_shot", "timer.periodic", "roundtrip", "request", "cycle", "chain"})
      sink.put("measures", what);
    sink.put("receives.chain", "spin_once");
    sink.put("interfaces", "service");
#ifdef RTMETER_ROS2_ACTIONS
    sink.put("interfaces", "action");
#endif
    for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.timer", drive);
    for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.cycle", drive);
    for (const char* components : {"one_thread", "two_threads"}) sink.put("components", components);
    for (const char* way : {"spin", "spin_once", "poll"}) sink.put("receives.roundtrip", way);
    for (const char* way : {"spin", "spin_once", "poll"}) sink.put("receives.request", way);
    sink.put("inline.server", "inline");
    for (const char* place : {"same_node", "same_process"}) sink.put("second_topic", place);
    for (const char* what : {"subscribers", "publishers", "background_nodes"}) sink.put("beside", what);
    for (const char* what : {"roundtrip", "request", "cycle components=two_threads"})
      sink.put("background", what);
    rtmeter_ros::describe_rmw_static(sink);
    kOptions.describe(sink);
  }

  explicit Ros2(const rtm_run& run)
      : run_(prepared(run)), spinning_(run), settings_(run), threads_(run, kOptions.threads),
        domain_(rtmeter_ros::domain_of(run, kOptions)), bare_node_(kOptions.bare_node.of(run)),
        inline_server_(inline_of(run)), init_(Init::of_process(domain_)) {
    if (run.measurement == RTM_WAKEUP) return;  // nothing is ever called back
    executor_ = make_executor(spinning_.executor, spinning_.threads, executor_options(settings_));
    if (spinning_.own_group || inline_server_ || two_threads())
      background_ = std::make_unique<BackgroundExecutor>();
  }

  ~Ros2() override {
    background_.reset();
    executor_.reset();
    timers_.clear();
    ports_.clear();
    clients_.clear();
    servers_.clear();
    nodes_.clear();
  }

  // On two threads component b is on ros2-background.
  void* create_node(const std::string& name) override {
    Component& made = add_node(name, two_threads() && name == "b");
    if (inline_server_) add_server();
    if (!threads_.wanted().empty()) threads_.await_names(0);
    threads_.enforce();
    return &made;
  }

  void* create_timer(void* component, const rtm_timer_spec& spec, rtm_timer_traits& traits) override {
    auto* of = static_cast<Component*>(component);
    timers_.emplace_back(*of->node, of->group, spec);
    threads_.enforce();
    traits.ticks = RTM_JUMPS;  // rcl_timer_call passes over every period that is missed
    traits.overrun = RTM_SKIP;
    traits.reports_monotonic = kTellsExpected && steady_is_monotonic() ? 1 : 0;
    return &timers_.back();
  }
  int arm(void* timer, std::int64_t /*now_ns*/) override {
    static_cast<Timer*>(timer)->arm();
    return 0;
  }

  void* create_publisher(void* component, const std::string& topic) override {
    return add_publisher(*static_cast<Component*>(component), topic);
  }
  void* create_subscriber(void* component, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    void* made = add_subscription(*static_cast<Component*>(component), topic, on_message, user);
    if (run_.measurement == RTM_CYCLE) await_match(topic);
    return made;
  }
  int publish(void* publisher, const rtm_message& message) override {
    static_cast<Publisher*>(publisher)->publish(message);
    return 0;
  }

  void* create_client(void* component, const std::string& service, rtm_on_reply on_reply,
                      void* user) override {
    clients_.push_back(make_client(place_of(component, service), on_reply, user));
    threads_.enforce();
    return clients_.back().get();
  }
  void* create_server(void* component, const std::string& service, rtm_on_message on_request,
                      void* user) override {
    servers_.push_back(make_server(place_of(component, service), on_request, user));
    threads_.enforce();
    return servers_.back().get();
  }
  int call(void* client, const rtm_message& request) override {
    static_cast<Client*>(client)->call(request);
    return 0;
  }
  int reply(void* server, rtm_reply what, const rtm_message& message) override {
    static_cast<Server*>(server)->reply(what, message);
    return 0;
  }

  int spin(std::int64_t /*timeout_ns*/) override {
    return uninterrupted([&] {
      if (spinning_.call == "spin")
        executor_->spin();
      else
        while (!interrupted_.load()) executor_->spin_once(nanoseconds(-1));
    });
  }
  int wait(std::int64_t timeout_ns) override {
    return uninterrupted([&] { executor_->spin_once(nanoseconds(timeout_ns)); });
  }
  int spin_some() override {
    if (spinning_.call == "spin_once")
      executor_->spin_once(nanoseconds(0));
    else if (spinning_.call == "spin_all")
      executor_->spin_all(nanoseconds(run_.period_ns));
    else
      executor_->spin_some();
    return 0;
  }
  // cancel() does nothing to a call that is about to begin: that one is waited for, which takes microseconds.
  void interrupt() override {
    interrupted_.store(true);
    if (executor_ == nullptr) return;
    while (inside_.load() && interrupted_.load() && !executor_->is_spinning())
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (executor_->is_spinning()) executor_->cancel();
  }

  void describe(rtmeter::Sink& sink) const override {
    rtmeter_ros::describe_rmw(sink, domain_, run_, kOptions);
    threads_.describe(sink);
    sink.put("node", bare_node_ ? "bare" : "default");
    if (run_.measurement == RTM_WAKEUP) return;
    sink.put("executor", spinning_.executor).put("spin", spinning_.call);
    sink.put("callback_group", spinning_.own_group ? "own" : "node");
    if (!timers_.empty()) sink.put("reported_clock", steady_is_monotonic() ? "monotonic" : "monotonic_raw");
    if (!ports_.empty()) {
      sink.put("intra_process", settings_.intra_process ? "yes" : "no")
          .put("loan", settings_.loan ? "yes" : "no");
      sink.put("allocator", settings_.tlsf ? "tlsf" : "std");
      if (settings_.tlsf) sink.put("payload_allocator", "std");
      if (run_.measurement == RTM_ROUNDTRIP && run_.role == RTM_ROLE_CLIENT)
        sink.put("server", inline_server_ ? "inline" : "process");
    }
    std::vector<rtmeter_common::EndFacts> ends;
    for (const auto& port : ports_) ends.push_back(port->facts());
    // What executors of events take comes in order; of wait sets see the adapter's page.
    const bool by_events = spinning_.executor.rfind("events", 0) == 0;
    if (run_.interface == RTM_ACTION && !clients_.empty() && !by_events) sink.put("may_drop", "feedback");
    for (const auto& client : clients_) ends.push_back(client->facts());
    for (const auto& server : servers_) ends.push_back(server->facts());
    if (ends.empty()) return;
    rtmeter_common::describe_ends(sink, ends, other_nodes(), rtmeter_ros::discovery_scope(domain_), "nodes");
  }

 private:
  bool two_threads() const {
    return run_.measurement == RTM_CYCLE && run_.components_asked == RTM_TWO_THREADS;
  }

  // A call of the executor's. An interruption ends the one under way, or else the next one, and no other.
  template <typename Call>
  int uninterrupted(Call&& call) {
    struct Inside {
      explicit Inside(Ros2& adapter) : of(adapter) { of.inside_.store(true); }
      ~Inside() {
        of.interrupted_.store(false);
        of.inside_.store(false);
      }
      Ros2& of;
    } const inside(*this);
    if (!interrupted_.load()) call();
    return 0;
  }

  struct Component {
    rclcpp::Node::SharedPtr node;
    rclcpp::CallbackGroup::SharedPtr group;  // null: the node's own
  };

  Place place_of(void* component, const std::string& service) const {
    const auto* of = static_cast<Component*>(component);
    return {of->node, of->group, run_, service};
  }

  Component& add_node(const std::string& name, bool in_background) {
    rclcpp::NodeOptions options;
    options.use_intra_process_comms(settings_.intra_process);
    if (bare_node_)
      options.start_parameter_services(false).start_parameter_event_publisher(false).enable_rosout(false);
    Component& made = nodes_.emplace_back();
    made.node = std::make_shared<rclcpp::Node>(name, "/rtmeter", options);
    if (executor_ == nullptr) return made;
    if (in_background) {
      background_->add(made.node);
      return made;
    }
    if (spinning_.own_group) {
      made.group = made.node->create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive, false);
      executor_->add_callback_group(made.group, made.node->get_node_base_interface());
      background_->add(made.node);
    } else {
      executor_->add_node(made.node);
    }
    return made;
  }

  // The server of a round trip between two nodes of one process.
  void add_server() {
    Component& server = add_node("server", true);
    echo_to_ = add_publisher(server, "pong");
    const rtm_on_message echo = [](void* adapter, const rtm_message* message) {
      auto* self = static_cast<Ros2*>(adapter);
      self->attempt("publish", [&] { return self->publish(self->echo_to_, *message); });
    };
    add_subscription(server, "ping", echo, this);
  }

  Publisher* add_publisher(Component& of, const std::string& topic) {
    auto made = make_publisher(*of.node, of.group, settings_, topic);
    Publisher* publisher = made.get();
    ports_.push_back(std::move(made));
    publishers_.push_back({topic, publisher});
    threads_.enforce();
    return publisher;
  }
  Port* add_subscription(Component& of, const std::string& topic, rtm_on_message on_message, void* user) {
    ports_.push_back(make_subscription(*of.node, of.group, settings_, topic, on_message, user));
    threads_.enforce();
    return ports_.back().get();
  }

  // Ends of one process find each other too, and that has to be over before the first request.
  void await_match(const std::string& topic) const {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (const auto& publisher : publishers_)
      while (publisher.first == topic && publisher.second->matched() == 0) {
        if (std::chrono::steady_clock::now() > give_up)
          throw rtmeter::SetupError(
              "topic", rtmeter_ros::topic_name(run_, topic),
              "its two ends in this process do not find each other: " + rtmeter_ros::discovery_scope(domain_),
              "see the RMW's messages in the cell's probe.stderr");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
  }

  static bool steady_is_monotonic() {
    rclcpp::Clock clock(RCL_STEADY_TIME);
    return rtmeter_ros::is_monotonic([&] { return clock.now().nanoseconds(); });
  }

  int other_nodes() const {
    const auto known = static_cast<int>(nodes_.front().node->get_node_names().size());
    return std::max(known - static_cast<int>(nodes_.size()), 0);
  }

  const rtm_run run_;
  const Spinning spinning_;
  const EndpointSettings settings_;
  rtmeter_common::ThreadPlan threads_;
  const std::size_t domain_;
  const bool bare_node_, inline_server_;
  const std::shared_ptr<Init> init_;
  std::unique_ptr<rclcpp::Executor> executor_;
  std::unique_ptr<BackgroundExecutor> background_;
  std::deque<Component> nodes_;
  std::deque<Timer> timers_;
  std::deque<std::unique_ptr<Port>> ports_;
  std::deque<std::unique_ptr<Client>> clients_;
  std::deque<std::unique_ptr<Server>> servers_;
  std::vector<std::pair<std::string, Publisher*>> publishers_;
  Publisher* echo_to_ = nullptr;  // the server's
  std::atomic<bool> inside_{false}, interrupted_{false};
};

}  // namespace
}  // namespace rtmeter_ros2

RTMETER_ADAPTER_MAIN(rtmeter_ros2::Ros2)
