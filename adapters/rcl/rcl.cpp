// The rcl adapter: ROS 2 without a client library, over the C interface that all of them stand on.
#include <rcl/error_handling.h>
#include <rcl/graph.h>

#include <atomic>
#include <deque>
#include <memory>
#include <string>

#include "../common/ros/installation.hpp"
#include "entities.hpp"
#include "services.hpp"

namespace rtmeter_rcl {
namespace {

// Context, clock and what wakes a wait: rcl_init and rcl_shutdown.
struct Context {
  Context(std::size_t domain) {
    rcl_init_options_t options = rcl_get_zero_initialized_init_options();
    check(rcl_init_options_init(&options, allocator), "rcl_init");
    check(rcl_init_options_set_domain_id(&options, domain), "rcl_init");
    const rcl_ret_t result = rcl_init(0, nullptr, &options, &context);
    check(rcl_init_options_fini(&options), "rcl_init");
    check(result, "rcl_init");
    check(rcl_clock_init(RCL_STEADY_TIME, &clock, &allocator), "clock");
    check(rcl_guard_condition_init(&wake, &context, rcl_guard_condition_get_default_options()), "wait set");
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    rcl_ret_t result = rcl_guard_condition_fini(&wake);
    result |= rcl_clock_fini(&clock) | rcl_shutdown(&context) | rcl_context_fini(&context);
    if (result != RCL_RET_OK) rcl_reset_error();
  }

  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_context_t context = rcl_get_zero_initialized_context();
  rcl_clock_t clock{};
  rcl_guard_condition_t wake = rcl_get_zero_initialized_guard_condition();
};

struct Node {
  Node(Context& of, const std::string& name) {
    const rcl_node_options_t options = rcl_node_get_default_options();
    check(rcl_node_init(&handle, name.c_str(), "/rtmeter", &of.context, &options), "node");
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() {
    if (rcl_node_fini(&handle) != RCL_RET_OK) rcl_reset_error();
  }
  rcl_node_t handle = rcl_get_zero_initialized_node();
};

class Rcl final : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink) {
    sink.put("name", "rcl").put("version", "1").put("middleware", "ROS 2, rcl");
    sink.put("middleware_version", RTMETER_RCL_VERSION);
    for (const char* what :
         {"wakeup", "timer.one_shot", "timer.periodic", "roundtrip", "request", "cycle", "chain"})
      sink.put("measures", what);
    sink.put("receives.chain", "spin_once");
    sink.put("interfaces", "service");
#ifdef RTMETER_RCL_ACTIONS
    sink.put("interfaces", "action");
#endif
#ifdef RTMETER_RCL_HAS_MATCHED
    sink.put("measures", "discovery").put("receives.discovery", "spin_once");
    for (const char* end : {"publisher", "subscriber"}) sink.put("matches", end);
#endif
    for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.timer", drive);
    for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.cycle", drive);
    sink.put("components", "one_thread");
    for (const char* way : {"spin", "spin_once", "poll"}) sink.put("receives.roundtrip", way);
    for (const char* way : {"spin", "spin_once", "poll"}) sink.put("receives.request", way);
    for (const char* place : {"same_node", "same_process"}) sink.put("second_topic", place);
    for (const char* what : {"subscribers", "publishers", "background_nodes"}) sink.put("beside", what);
    for (const char* what : {"roundtrip", "request"}) sink.put("background", what);
    rtmeter_ros::describe_rmw_static(sink);
    kOptions.describe(sink);
  }

  explicit Rcl(const rtm_run& run)
      : run_(run), threads_(run, kOptions.threads), domain_(rtmeter_ros::domain_of(run, kOptions)) {
    rtmeter_ros::check_installation("rcl", RTMETER_RCL_VERSION);
    rtmeter_ros::load_rmw(run, kOptions);
    // Its options are refused before anything is started; a service has the profile of ROS's services.
    if (run.measurement != RTM_REQUEST) rtmeter_ros::qos_of(run, kOptions);
    context_ = std::make_unique<Context>(domain_);
    threads_.enforce();
  }
  ~Rcl() override {
    if (rcl_wait_set_fini(&wait_set_) != RCL_RET_OK) rcl_reset_error();
  }

  void* create_node(const std::string& name) override {
    nodes_.emplace_back(*context_, name);
    threads_.enforce();
    resize();
    return &nodes_.back();
  }

  void* create_timer(void* /*node*/, const rtm_timer_spec& spec, rtm_timer_traits& traits) override {
    timers_.emplace_back(&context_->clock, &context_->context, spec);
    resize();
    traits.ticks = RTM_JUMPS;  // rcl_timer_call passes over every period that is missed
    traits.overrun = RTM_SKIP;
#ifdef RTMETER_RCL_HAS_CALL_INFO
    traits.reports_monotonic = is_monotonic() ? 1 : 0;
#else
    traits.reports_monotonic = 0;
#endif
    return &timers_.back();
  }
  int arm(void* timer, std::int64_t /*now_ns*/) override { return static_cast<Timer*>(timer)->arm(); }

  void watch(void* /*node*/, rtm_on_match on_match, void* user) override {
    on_match_ = on_match;
    watcher_ = user;
  }

  void* create_publisher(void* node, const std::string& topic) override {
    publishers_.emplace_back(&static_cast<Node*>(node)->handle, run_, topic);
    if (on_match_ != nullptr) watches_.emplace_back().of(publishers_.back().get(), on_match_, watcher_);
    threads_.enforce();
    return &publishers_.back();
  }
  void* create_subscriber(void* node, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    subscriptions_.emplace_back(&static_cast<Node*>(node)->handle, run_, topic, on_message, user);
    if (on_match_ != nullptr) watches_.emplace_back().of(subscriptions_.back().get(), on_match_, watcher_);
    threads_.enforce();
    resize();
    return &subscriptions_.back();
  }
  int publish(void* publisher, const rtm_message& message) override {
    return static_cast<Publisher*>(publisher)->publish(message);
  }

  void* create_client(void* node, const std::string& service, rtm_on_reply on_reply, void* user) override {
    return add(make_client(place_of(node, service), on_reply, user));
  }
  void* create_server(void* node, const std::string& service, rtm_on_message on_request,
                      void* user) override {
    return add(make_server(place_of(node, service), on_request, user));
  }
  int call(void* client, const rtm_message& request) override {
    return static_cast<RequestEnd*>(client)->call(request);
  }
  int reply(void* server, rtm_reply what, const rtm_message& message) override {
    return static_cast<RequestEnd*>(server)->reply(what, message);
  }

  int spin(std::int64_t timeout_ns) override {
    int result = 0;
    while (result == 0 && !interrupted_.exchange(false)) result = wait_and_call(timeout_ns);
    return result;
  }
  int wait(std::int64_t timeout_ns) override {
    return interrupted_.exchange(false) ? 0 : wait_and_call(timeout_ns);
  }
  int spin_some() override { return wait_and_call(0); }
  void interrupt() override {
    interrupted_.store(true);
    if (rcl_trigger_guard_condition(&context_->wake) != RCL_RET_OK) rcl_reset_error();
  }

  void describe(rtmeter::Sink& sink) const override {
    rtmeter_ros::describe_rmw(sink, domain_, run_, kOptions);
    threads_.describe(sink);
    if (!timers_.empty()) sink.put("reported_clock", is_monotonic() ? "monotonic" : "monotonic_raw");
    std::vector<rtmeter_common::EndFacts> ends;
    for (const Publisher& publisher : publishers_) ends.push_back(publisher.facts());
    for (const Subscription& subscription : subscriptions_) ends.push_back(subscription.facts());
    for (const auto& end : requests_) ends.push_back(end->facts());
    rtmeter_common::describe_ends(sink, ends, other_nodes(), rtmeter_ros::discovery_scope(domain_), "nodes");
  }

 private:
  Place place_of(void* node, const std::string& name) const {
    return {&static_cast<Node*>(node)->handle, &context_->clock, run_, name};
  }
  RequestEnd* add(std::unique_ptr<RequestEnd> end) {
    requests_.push_back(std::move(end));
    threads_.enforce();
    resize();
    return requests_.back().get();
  }

  bool is_monotonic() const {
    return rtmeter_ros::is_monotonic([&] {
      rcl_time_point_value_t now = 0;
      check(rcl_clock_get_now(&context_->clock, &now), "clock");
      return now;
    });
  }

  int other_nodes() const {
    rcutils_string_array_t names = rcutils_get_zero_initialized_string_array();
    rcutils_string_array_t spaces = rcutils_get_zero_initialized_string_array();
    if (nodes_.empty() ||
        rcl_get_node_names(&nodes_.front().handle, context_->allocator, &names, &spaces) != RCL_RET_OK) {
      rcl_reset_error();
      return 0;
    }
    const auto others = static_cast<int>(names.size) - static_cast<int>(nodes_.size());
    if (rcutils_string_array_fini(&names) + rcutils_string_array_fini(&spaces) != 0) rcutils_reset_error();
    return std::max(others, 0);
  }

  // Setup: a wait set has room for exactly what is waited for.
  void resize() {
    if (rcl_wait_set_is_valid(&wait_set_)) check(rcl_wait_set_fini(&wait_set_), "wait set");
    wait_set_ = rcl_get_zero_initialized_wait_set();
    Room all{subscriptions_.size(), 1, timers_.size(), 0, 0};
    for (const auto& end : requests_) {
      const Room room = end->room();
      all.subscriptions += room.subscriptions;
      all.guard_conditions += room.guard_conditions;
      all.timers += room.timers;
      all.clients += room.clients;
      all.services += room.services;
    }
    check(rcl_wait_set_init(&wait_set_, all.subscriptions, all.guard_conditions, all.timers, all.clients,
                            all.services, watches_.size(), &context_->context, context_->allocator),
          "wait set");
  }

  // What an executor does: fills the wait set, waits, calls what is ready. Measured path.
  int wait_and_call(std::int64_t timeout_ns) noexcept {
    rcl_ret_t result = rcl_wait_set_clear(&wait_set_);
    for (const Timer& timer : timers_) result |= rcl_wait_set_add_timer(&wait_set_, timer.get(), nullptr);
    for (const Subscription& subscription : subscriptions_)
      result |= rcl_wait_set_add_subscription(&wait_set_, subscription.get(), nullptr);
    for (const auto& end : requests_) result |= end->add_to(wait_set_);
    for (const Watch& watch : watches_) result |= rcl_wait_set_add_event(&wait_set_, watch.get(), nullptr);
    result |= rcl_wait_set_add_guard_condition(&wait_set_, &context_->wake, nullptr);
    if (result == RCL_RET_OK) result = rcl_wait(&wait_set_, timeout_ns == INT64_MAX ? -1 : timeout_ns);
    if (result != RCL_RET_OK) {
      rcl_reset_error();
      return result == RCL_RET_TIMEOUT ? 0 : -1;
    }
    for (std::size_t i = 0; i < timers_.size(); ++i)
      if (wait_set_.timers[i] != nullptr) timers_[i].call();
    for (std::size_t i = 0; i < watches_.size(); ++i)
      if (wait_set_.events[i] != nullptr) watches_[i].take();
    for (std::size_t i = 0; i < subscriptions_.size(); ++i)
      if (wait_set_.subscriptions[i] != nullptr) subscriptions_[i].take();
    for (const auto& end : requests_) end->take(wait_set_);
    return 0;
  }

  const rtm_run run_;
  rtmeter_common::ThreadPlan threads_;
  const std::size_t domain_;
  std::unique_ptr<Context> context_;
  std::deque<Node> nodes_;
  std::deque<Timer> timers_;
  std::deque<Publisher> publishers_;
  std::deque<Subscription> subscriptions_;
  std::deque<Watch> watches_;  // of a discovery: they end before their ends
  rtm_on_match on_match_ = nullptr;
  void* watcher_ = nullptr;
  std::deque<std::unique_ptr<RequestEnd>> requests_;
  rcl_wait_set_t wait_set_ = rcl_get_zero_initialized_wait_set();
  std::atomic<bool> interrupted_{false};
};

}  // namespace
}  // namespace rtmeter_rcl

RTMETER_ADAPTER_MAIN(rtmeter_rcl::Rcl)
