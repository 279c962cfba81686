#include <rtmeter_msgs/srv/call.hpp>
#include <type_traits>
#include <utility>

#include "requests.hpp"

namespace rtmeter_ros2 {
namespace {

using rtmeter_msgs::srv::Call;

// The profile of ROS 2's services, as this rclcpp takes it beside a group: older ones take rmw's own.
template <typename Node, typename = void>
struct Services {
  static rmw_qos_profile_t qos() { return rmw_qos_profile_services_default; }
};
template <typename Node>
struct Services<Node, std::void_t<decltype(std::declval<Node&>().template create_client<Call>(
                          "", rclcpp::ServicesQoS()))>> {
  static rclcpp::QoS qos() { return rclcpp::ServicesQoS(); }
};

class ServiceClient final : public Client {
 public:
  ServiceClient(const Place& at, rtm_on_reply on_reply, void* user)
      : name_("client of " + at.name), on_reply_(on_reply), user_(user),
        client_(at.node->create_client<Call>(rtmeter_ros::topic_name(at.run, at.name),
                                             Services<rclcpp::Node>::qos(), at.group)) {}

  void call(const rtm_message& from) override {
    auto request = std::make_shared<Call::Request>();
    set(*request, from);
    client_->async_send_request(request, [this](rclcpp::Client<Call>::SharedFuture future) {
      const auto response = future.get();
      const rtm_message message = view(*response);
      on_reply_(user_, RTM_RESULT, &message);
    });
  }
  rtmeter_common::EndFacts facts() const override {
    return rtmeter_ros::request_facts(name_,
                                      client_->get_request_publisher_actual_qos().get_rmw_qos_profile(),
                                      client_->service_is_ready());
  }

 private:
  const std::string name_;
  const rtm_on_reply on_reply_;
  void* const user_;
  const rclcpp::Client<Call>::SharedPtr client_;
};

class ServiceServer final : public Server {
 public:
  ServiceServer(const Place& at, rtm_on_message on_request, void* user) : name_("service " + at.name) {
    const auto serve = [this, on_request, user](const std::shared_ptr<Call::Request> request,
                                                std::shared_ptr<Call::Response> response) {
      response_ = response.get();
      const rtm_message message = view(*request);
      on_request(user, &message);
    };
    service_ = at.node->create_service<Call>(rtmeter_ros::topic_name(at.run, at.name), serve,
                                             Services<rclcpp::Node>::qos(), at.group);
  }

  void reply(rtm_reply /*what*/, const rtm_message& message) override { set(*response_, message); }
  rtmeter_common::EndFacts facts() const override {
    return rtmeter_ros::request_facts(
        name_, service_->get_request_subscription_actual_qos().get_rmw_qos_profile(), false);
  }

 private:
  const std::string name_;
  Call::Response* response_ = nullptr;  // to the request under way: its group serves one at a time
  rclcpp::Service<Call>::SharedPtr service_;
};

}  // namespace

std::unique_ptr<Client> make_client(const Place& at, rtm_on_reply on_reply, void* user) {
#ifdef RTMETER_ROS2_ACTIONS
  if (at.run.interface == RTM_ACTION) return make_action_client(at, on_reply, user);
#endif
  return std::make_unique<ServiceClient>(at, on_reply, user);
}

std::unique_ptr<Server> make_server(const Place& at, rtm_on_message on_request, void* user) {
#ifdef RTMETER_ROS2_ACTIONS
  if (at.run.interface == RTM_ACTION) return make_action_server(at, on_request, user);
#endif
  return std::make_unique<ServiceServer>(at, on_request, user);
}

}  // namespace rtmeter_ros2
