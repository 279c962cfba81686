#include <rclcpp_action/rclcpp_action.hpp>
#include <rtmeter_msgs/action/errand.hpp>

#include "requests.hpp"

namespace rtmeter_ros2 {
namespace {

using rtmeter_msgs::action::Errand;

class ActionClient final : public Client {
  using GoalHandle = rclcpp_action::ClientGoalHandle<Errand>;

 public:
  ActionClient(const Place& at, rtm_on_reply on_reply, void* user)
      : name_("client of " + at.name), on_reply_(on_reply), user_(user),
        client_(rclcpp_action::create_client<Errand>(at.node, rtmeter_ros::topic_name(at.run, at.name),
                                                     at.group)) {}

  void call(const rtm_message& from) override {
    Errand::Goal goal;
    set(goal, from);
    rclcpp_action::Client<Errand>::SendGoalOptions options;
    options.goal_response_callback = [this, sequence = from.sequence](const GoalHandle::SharedPtr& accepted) {
      if (accepted != nullptr) tell(RTM_ACCEPTED, {sequence, nullptr, 0});
    };
    options.feedback_callback = [this](GoalHandle::SharedPtr,
                                       const std::shared_ptr<const Errand::Feedback> feedback) {
      tell(RTM_FEEDBACK, {feedback->sequence, nullptr, 0});
    };
    options.result_callback = [this](const GoalHandle::WrappedResult& result) {
      if (result.code == rclcpp_action::ResultCode::SUCCEEDED) tell(RTM_RESULT, view(*result.result));
    };
    client_->async_send_goal(goal, options);
  }
  rtmeter_common::EndFacts facts() const override {
    return rtmeter_ros::request_facts(name_, rcl_action_client_get_default_options().goal_service_qos,
                                      client_->action_server_is_ready());
  }

 private:
  void tell(rtm_reply what, const rtm_message& message) { on_reply_(user_, what, &message); }

  const std::string name_;
  const rtm_on_reply on_reply_;
  void* const user_;
  const rclcpp_action::Client<Errand>::SharedPtr client_;
};

// The errand is done at once, so where a goal is accepted, as a callback that returns at once may; one that
// took time would have a thread.
class ActionServer final : public Server {
  using GoalHandle = rclcpp_action::ServerGoalHandle<Errand>;

 public:
  ActionServer(const Place& at, rtm_on_message on_request, void* user) : name_("action " + at.name) {
    const auto on_goal = [](const rclcpp_action::GoalUUID&, std::shared_ptr<const Errand::Goal>) {
      return rclcpp_action::GoalResponse::ACCEPT_AND_EXECUTE;
    };
    const auto on_cancel = [](const std::shared_ptr<GoalHandle>) {
      return rclcpp_action::CancelResponse::REJECT;  // it is over by then
    };
    const auto on_accepted = [this, on_request, user](const std::shared_ptr<GoalHandle> goal_handle) {
      goal_handle_ = goal_handle.get();
      const auto goal = goal_handle->get_goal();
      const rtm_message message = view(*goal);
      on_request(user, &message);
    };
    server_ = rclcpp_action::create_server<Errand>(at.node, rtmeter_ros::topic_name(at.run, at.name), on_goal,
                                                   on_cancel, on_accepted, options_, at.group);
  }

  void reply(rtm_reply what, const rtm_message& message) override {
    if (what == RTM_FEEDBACK) {
      const auto feedback = std::make_shared<Errand::Feedback>();
      feedback->sequence = message.sequence;
      goal_handle_->publish_feedback(feedback);
      return;
    }
    const auto result = std::make_shared<Errand::Result>();
    set(*result, message);
    goal_handle_->succeed(result);
  }
  rtmeter_common::EndFacts facts() const override {
    return rtmeter_ros::request_facts(name_, options_.goal_service_qos, false);
  }

 private:
  const std::string name_;
  const rcl_action_server_options_t options_ = rcl_action_server_get_default_options();
  GoalHandle* goal_handle_ = nullptr;  // of the goal under way: its group serves one at a time
  rclcpp_action::Server<Errand>::SharedPtr server_;
};

}  // namespace

std::unique_ptr<Client> make_action_client(const Place& at, rtm_on_reply on_reply, void* user) {
  return std::make_unique<ActionClient>(at, on_reply, user);
}

std::unique_ptr<Server> make_action_server(const Place& at, rtm_on_message on_request, void* user) {
  return std::make_unique<ActionServer>(at, on_request, user);
}

}  // namespace rtmeter_ros2
