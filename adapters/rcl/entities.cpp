#include "entities.hpp"

#include <rcl/error_handling.h>
#include <rcl/event.h>
#include <rosidl_runtime_c/message_type_support_struct.h>

#include <algorithm>

namespace rtmeter_rcl {
namespace {

const rosidl_message_type_support_t* type_support() {
  return ROSIDL_GET_MSG_TYPE_SUPPORT(rtmeter_msgs, msg, Message);
}

// The policy that a peer's end was refused for.
template <typename Status>
std::string refused_policy(const rcl_event_t& event) {
  Status status{};
  if (rcl_take_event(&event, &status) != RCL_RET_OK) rcl_reset_error();
  return rtmeter_ros::policy_name(status.last_policy_kind);
}

}  // namespace

void check(rcl_ret_t result, const std::string& what) {
  if (result == RCL_RET_OK) return;
  const std::string words = rcl_get_error_string().str;
  rcl_reset_error();
  throw rtmeter::SetupError(what, std::to_string(result), "rcl: " + words,
                            "see the middleware's messages in the cell's probe.stderr");
}

Watch::~Watch() {
  if (on_match_ != nullptr) done(rcl_event_fini(&event_));
}
#ifdef RTMETER_RCL_HAS_MATCHED
void Watch::of(rcl_publisher_t* publisher, rtm_on_match on_match, void* user) {
  check(rcl_publisher_event_init(&event_, publisher, RCL_PUBLISHER_MATCHED), "matched event");
  on_match_ = on_match;
  user_ = user;
}
void Watch::of(rcl_subscription_t* subscription, rtm_on_match on_match, void* user) {
  check(rcl_subscription_event_init(&event_, subscription, RCL_SUBSCRIPTION_MATCHED), "matched event");
  end_ = RTM_SUBSCRIBER;
  on_match_ = on_match;
  user_ = user;
}
// One of them is the node's own other end, which is matched as soon as it is made.
void Watch::take() noexcept {
  rmw_matched_status_t status{};
  if (done(rcl_take_event(&event_, &status)) != 0) return;
  on_match_(user_, end_, std::max(static_cast<std::int32_t>(status.current_count) - 1, 0));
}
#else
void Watch::of(rcl_publisher_t* /*publisher*/, rtm_on_match /*on_match*/, void* /*user*/) {}
void Watch::of(rcl_subscription_t* /*subscription*/, rtm_on_match /*on_match*/, void* /*user*/) {}
void Watch::take() noexcept {}
#endif

Publisher::Publisher(rcl_node_t* node, const rtm_run& run, const std::string& topic)
    : name_("publisher of " + topic), node_(node) {
  make_room(*message_, run.payload_bytes);
  rcl_publisher_options_t options = rcl_publisher_get_default_options();
  options.qos = rtmeter_ros::qos_of(run, kOptions);
  check(rcl_publisher_init(&handle_, node, type_support(), rtmeter_ros::topic_name(run, topic).c_str(),
                           &options),
        name_);
  check(rcl_publisher_event_init(&refused_, &handle_, RCL_PUBLISHER_OFFERED_INCOMPATIBLE_QOS), name_);
}
Publisher::~Publisher() {
  done(rcl_event_fini(&refused_));
  done(rcl_publisher_fini(&handle_, node_));
}
int Publisher::publish(const rtm_message& message) noexcept {
  set(*message_, message);
  return done(rcl_publish(&handle_, message_.get(), nullptr));
}
rtmeter_common::EndFacts Publisher::facts() const {
  rtmeter_common::EndFacts facts;
  facts.name = name_;
  rtmeter_ros::add_policies(*rcl_publisher_get_actual_qos(&handle_), facts);
  done(rcl_publisher_get_subscription_count(&handle_, &facts.matched));
  facts.incompatible = refused_policy<rmw_offered_qos_incompatible_event_status_t>(refused_);
  return facts;
}

Subscription::Subscription(rcl_node_t* node, const rtm_run& run, const std::string& topic,
                           rtm_on_message on_message, void* user)
    : name_("subscription of " + topic), node_(node), on_message_(on_message), user_(user) {
  make_room(*message_, run.payload_bytes);
  rcl_subscription_options_t options = rcl_subscription_get_default_options();
  options.qos = rtmeter_ros::qos_of(run, kOptions);
  check(rcl_subscription_init(&handle_, node, type_support(), rtmeter_ros::topic_name(run, topic).c_str(),
                              &options),
        name_);
  check(rcl_subscription_event_init(&refused_, &handle_, RCL_SUBSCRIPTION_REQUESTED_INCOMPATIBLE_QOS), name_);
}
Subscription::~Subscription() {
  done(rcl_event_fini(&refused_));
  done(rcl_subscription_fini(&handle_, node_));
}
void Subscription::take() noexcept {
  rmw_message_info_t info = rmw_get_zero_initialized_message_info();
  if (done(rcl_take(&handle_, message_.get(), &info, nullptr)) != 0) return;  // none was left
  const rtm_message message = view(*message_);
  on_message_(user_, &message);
}
rtmeter_common::EndFacts Subscription::facts() const {
  rtmeter_common::EndFacts facts;
  facts.name = name_;
  rtmeter_ros::add_policies(*rcl_subscription_get_actual_qos(&handle_), facts);
  done(rcl_subscription_get_publisher_count(&handle_, &facts.matched));
  facts.incompatible = refused_policy<rmw_requested_qos_incompatible_event_status_t>(refused_);
  return facts;
}

Timer::Timer(rcl_clock_t* clock, rcl_context_t* context, const rtm_timer_spec& spec) : spec_(spec) {
  const rcl_allocator_t allocator = rcl_get_default_allocator();
#ifdef RTMETER_RCL_HAS_TIMER_INIT2
  check(rcl_timer_init2(&handle_, clock, context, spec.period_ns, nullptr, allocator, false), "timer");
#else
  check(rcl_timer_init(&handle_, clock, context, spec.period_ns, nullptr, allocator), "timer");
  check(rcl_timer_cancel(&handle_), "timer");
#endif
}
Timer::~Timer() { done(rcl_timer_fini(&handle_)); }

int Timer::arm() noexcept { return done(rcl_timer_reset(&handle_)); }

// What client libraries do with a timer that is ready. The stamp is taken in on_fire.
void Timer::call() noexcept {
#ifdef RTMETER_RCL_HAS_CALL_INFO
  rcl_timer_call_info_t info{};
  if (done(rcl_timer_call_with_info(&handle_, &info)) != 0) return;
  const rtm_fire fire{info.expected_call_time, info.actual_call_time};
#else
  if (done(rcl_timer_call(&handle_)) != 0) return;
  const rtm_fire fire{RTM_ABSENT, RTM_ABSENT};
#endif
  spec_.on_fire(spec_.user, &fire);
  if (spec_.mode == RTM_ONE_SHOT) done(rcl_timer_cancel(&handle_));
}

}  // namespace rtmeter_rcl
