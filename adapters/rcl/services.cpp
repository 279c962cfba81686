#include "services.hpp"

#include <rcl/graph.h>
#include <rosidl_runtime_c/service_type_support_struct.h>
#include <rtmeter_msgs/srv/call.h>

#include "bodies.hpp"
#include "entities.hpp"

namespace rtmeter_rcl {
namespace {

using Request = RTMETER_OWNED(rtmeter_msgs__srv__Call_Request);
using Response = RTMETER_OWNED(rtmeter_msgs__srv__Call_Response);

const rosidl_service_type_support_t* type_support() {
  return ROSIDL_GET_SRV_TYPE_SUPPORT(rtmeter_msgs, srv, Call);
}

// The quality of service is that of ROS 2's services.
class Client final : public RequestEnd {
 public:
  Client(const Place& at, rtm_on_reply on_reply, void* user)
      : name_("client of " + at.name), node_(at.node), on_reply_(on_reply), user_(user) {
    make_room(*request_, at.run.payload_bytes);
    make_room(*response_, at.run.payload_bytes);
    const rcl_client_options_t options = rcl_client_get_default_options();
    check(rcl_client_init(&handle_, node_, type_support(), rtmeter_ros::topic_name(at.run, at.name).c_str(),
                          &options),
          name_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() override { done(rcl_client_fini(&handle_, node_)); }

  Room room() const override {
    Room room;
    room.clients = 1;
    return room;
  }
  rtmeter_common::EndFacts facts() const override {
    bool is_there = false;
    done(rcl_service_server_is_available(node_, &handle_, &is_there));
    return rtmeter_ros::request_facts(name_, *rcl_client_request_publisher_get_actual_qos(&handle_),
                                      is_there);
  }

  rcl_ret_t add_to(rcl_wait_set_t& wait_set) noexcept override {
    return rcl_wait_set_add_client(&wait_set, &handle_, &index_);
  }
  void take(const rcl_wait_set_t& ready) noexcept override {
    rmw_request_id_t answered{};
    if (ready.clients[index_] == nullptr ||
        done(rcl_take_response(&handle_, &answered, response_.get())) != 0)  // none was left
      return;
    const rtm_message message = view(*response_);
    on_reply_(user_, RTM_RESULT, &message);
  }
  int call(const rtm_message& request) noexcept override {
    std::int64_t number = 0;
    set(*request_, request);
    return done(rcl_send_request(&handle_, request_.get(), &number));
  }

 private:
  const std::string name_;
  rcl_node_t* const node_;
  rcl_client_t handle_ = rcl_get_zero_initialized_client();
  std::size_t index_ = 0;  // in the wait set
  Request request_;        // who sends and who takes may be two threads
  Response response_;
  const rtm_on_reply on_reply_;
  void* const user_;
};

class Service final : public RequestEnd {
 public:
  Service(const Place& at, rtm_on_message on_request, void* user)
      : name_("service " + at.name), node_(at.node), on_request_(on_request), user_(user) {
    make_room(*request_, at.run.payload_bytes);
    make_room(*response_, at.run.payload_bytes);
    const rcl_service_options_t options = rcl_service_get_default_options();
    check(rcl_service_init(&handle_, node_, type_support(), rtmeter_ros::topic_name(at.run, at.name).c_str(),
                           &options),
          name_);
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service() override { done(rcl_service_fini(&handle_, node_)); }

  Room room() const override {
    Room room;
    room.services = 1;
    return room;
  }
  rtmeter_common::EndFacts facts() const override {
    return rtmeter_ros::request_facts(name_, *rcl_service_request_subscription_get_actual_qos(&handle_),
                                      false);
  }

  rcl_ret_t add_to(rcl_wait_set_t& wait_set) noexcept override {
    return rcl_wait_set_add_service(&wait_set, &handle_, &index_);
  }
  void take(const rcl_wait_set_t& ready) noexcept override {
    if (ready.services[index_] == nullptr || done(rcl_take_request(&handle_, &asked_, request_.get())) != 0)
      return;
    const rtm_message message = view(*request_);
    on_request_(user_, &message);
  }
  int reply(rtm_reply /*what*/, const rtm_message& message) noexcept override {
    set(*response_, message);
    return done(rcl_send_response(&handle_, &asked_, response_.get()));
  }

 private:
  const std::string name_;
  rcl_node_t* const node_;
  rcl_service_t handle_ = rcl_get_zero_initialized_service();
  std::size_t index_ = 0;  // in the wait set
  Request request_;
  Response response_;
  rmw_request_id_t asked_{};  // the request that was taken last
  const rtm_on_message on_request_;
  void* const user_;
};

}  // namespace

std::unique_ptr<RequestEnd> make_client(const Place& at, rtm_on_reply on_reply, void* user) {
#ifdef RTMETER_RCL_ACTIONS
  if (at.run.interface == RTM_ACTION) return make_action_client(at, on_reply, user);
#endif
  return std::make_unique<Client>(at, on_reply, user);
}

std::unique_ptr<RequestEnd> make_server(const Place& at, rtm_on_message on_request, void* user) {
#ifdef RTMETER_RCL_ACTIONS
  if (at.run.interface == RTM_ACTION) return make_action_server(at, on_request, user);
#endif
  return std::make_unique<Service>(at, on_request, user);
}

}  // namespace rtmeter_rcl
