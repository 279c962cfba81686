#include "services.hpp"

#include <rcl/error_handling.h>
#include <rcl/graph.h>
#include <rosidl_runtime_c/primitives_sequence_functions.h>
#include <rosidl_runtime_c/service_type_support_struct.h>

#include <cstring>

namespace rtmeter_rcl {
namespace {

const rosidl_service_type_support_t* type_support() {
  return ROSIDL_GET_SRV_TYPE_SUPPORT(rtmeter_msgs, srv, Call);
}

int done(rcl_ret_t result) noexcept {
  if (result == RCL_RET_OK) return 0;
  rcl_reset_error();
  return -1;
}

bool init(rtmeter_msgs__srv__Call_Request* body) { return rtmeter_msgs__srv__Call_Request__init(body); }
bool init(rtmeter_msgs__srv__Call_Response* body) { return rtmeter_msgs__srv__Call_Response__init(body); }
void fini(rtmeter_msgs__srv__Call_Request* body) { rtmeter_msgs__srv__Call_Request__fini(body); }
void fini(rtmeter_msgs__srv__Call_Response* body) { rtmeter_msgs__srv__Call_Response__fini(body); }

}  // namespace

template <typename T>
Body<T>::Body(std::uint32_t payload_bytes) {
  if (!init(&body_) || !rosidl_runtime_c__uint8__Sequence__init(&body_.payload, payload_bytes))
    throw rtmeter::SetupError("payload_bytes", std::to_string(payload_bytes), "there is no memory for it",
                              "choose a smaller payload");
}
template <typename T>
Body<T>::~Body() {
  fini(&body_);
}
template <typename T>
rtm_message Body<T>::view() const {
  return {body_.sequence, body_.payload.data, static_cast<std::uint32_t>(body_.payload.size)};
}
template <typename T>
void Body<T>::set(const rtm_message& message) noexcept {
  body_.sequence = message.sequence;
  body_.payload.size = std::min<std::size_t>(message.bytes, body_.payload.capacity);
  std::memcpy(body_.payload.data, message.data, body_.payload.size);
}

Client::Client(rcl_node_t* node, const rtm_run& run, const std::string& service, rtm_on_reply on_reply,
               void* user)
    : name_("client of " + service), node_(node), request_(run.payload_bytes), response_(run.payload_bytes),
      on_reply_(on_reply), user_(user) {
  const rcl_client_options_t options = rcl_client_get_default_options();
  check(rcl_client_init(&handle_, node, type_support(), rtmeter_ros::topic_name(run, service).c_str(),
                        &options),
        name_);
}
Client::~Client() { done(rcl_client_fini(&handle_, node_)); }

int Client::call(const rtm_message& request) noexcept {
  std::int64_t number = 0;
  request_.set(request);
  return done(rcl_send_request(&handle_, request_.get(), &number));
}
void Client::take() noexcept {
  rmw_request_id_t answered{};
  if (done(rcl_take_response(&handle_, &answered, response_.get())) != 0) return;  // none was left
  const rtm_message message = response_.view();
  on_reply_(user_, RTM_RESULT, &message);
}
rtmeter_common::EndFacts Client::facts() const {
  rtmeter_common::EndFacts facts;
  facts.name = name_;
  rtmeter_ros::add_policies(*rcl_client_request_publisher_get_actual_qos(&handle_), facts);
  bool is_there = false;
  done(rcl_service_server_is_available(node_, &handle_, &is_there));
  facts.matched = is_there ? 1 : 0;
  return facts;
}

Service::Service(rcl_node_t* node, const rtm_run& run, const std::string& service, rtm_on_message on_request,
                 void* user)
    : name_("service " + service), node_(node), request_(run.payload_bytes), response_(run.payload_bytes),
      on_request_(on_request), user_(user) {
  const rcl_service_options_t options = rcl_service_get_default_options();
  check(rcl_service_init(&handle_, node, type_support(), rtmeter_ros::topic_name(run, service).c_str(),
                         &options),
        name_);
}
Service::~Service() { done(rcl_service_fini(&handle_, node_)); }

void Service::take() noexcept {
  if (done(rcl_take_request(&handle_, &asked_, request_.get())) != 0) return;
  const rtm_message message = request_.view();
  on_request_(user_, &message);
}
int Service::reply(const rtm_message& message) noexcept {
  response_.set(message);
  return done(rcl_send_response(&handle_, &asked_, response_.get()));
}
rtmeter_common::EndFacts Service::facts() const {
  rtmeter_common::EndFacts facts;
  facts.name = name_;
  rtmeter_ros::add_policies(*rcl_service_request_subscription_get_actual_qos(&handle_), facts);
  return facts;
}

}  // namespace rtmeter_rcl
