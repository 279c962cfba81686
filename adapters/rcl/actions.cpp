// rcl_action's clients and servers: what client libraries do above them is done here.
#include <rcl_action/rcl_action.h>
#include <rcl_action/wait.h>
#include <rosidl_runtime_c/action_type_support_struct.h>
#include <rtmeter_msgs/action/errand.h>

#include <array>
#include <map>
#include <mutex>
#include <vector>

#include "bodies.hpp"
#include "entities.hpp"
#include "services.hpp"

namespace rtmeter_rcl {
namespace {

using Goal = RTMETER_OWNED(rtmeter_msgs__action__Errand_SendGoal_Request);
using Acceptance = RTMETER_OWNED(rtmeter_msgs__action__Errand_SendGoal_Response);
using Feedback = RTMETER_OWNED(rtmeter_msgs__action__Errand_FeedbackMessage);
using Question = RTMETER_OWNED(rtmeter_msgs__action__Errand_GetResult_Request);
using Result = RTMETER_OWNED(rtmeter_msgs__action__Errand_GetResult_Response);
using Statuses = RTMETER_OWNED(action_msgs__msg__GoalStatusArray);

const rosidl_action_type_support_t* type_support() {
  return ROSIDL_GET_ACTION_TYPE_SUPPORT(rtmeter_msgs, Errand);
}

template <typename Ask, typename Handle>
Room room_by(Ask ask, const Handle& handle, const std::string& name) {
  Room room;
  check(
      ask(&handle, &room.subscriptions, &room.guard_conditions, &room.timers, &room.clients, &room.services),
      name);
  return room;
}

class ActionClient final : public RequestEnd {
 public:
  ActionClient(const Place& at, rtm_on_reply on_reply, void* user)
      : name_("client of " + at.name), node_(at.node), on_reply_(on_reply), user_(user) {
    make_room(goal_->goal, at.run.payload_bytes);
    make_room(result_->result, at.run.payload_bytes);
    check(rcl_action_client_init(&handle_, node_, type_support(),
                                 rtmeter_ros::topic_name(at.run, at.name).c_str(), &options_),
          name_);
  }
  ActionClient(const ActionClient&) = delete;
  ActionClient& operator=(const ActionClient&) = delete;
  ~ActionClient() override { done(rcl_action_client_fini(&handle_, node_)); }

  Room room() const override { return room_by(rcl_action_client_wait_set_get_num_entities, handle_, name_); }
  rtmeter_common::EndFacts facts() const override {
    bool is_there = false;
    done(rcl_action_server_is_available(node_, &handle_, &is_there));
    return rtmeter_ros::request_facts(name_, options_.goal_service_qos, is_there);
  }

  rcl_ret_t add_to(rcl_wait_set_t& wait_set) noexcept override {
    return rcl_action_wait_set_add_action_client(&wait_set, &handle_, nullptr, nullptr);
  }
  void take(const rcl_wait_set_t& ready) noexcept override {
    bool feedback = false, status = false, acceptance = false, cancelled = false, result = false;
    if (done(rcl_action_client_wait_set_get_entities_ready(&ready, &handle_, &feedback, &status, &acceptance,
                                                           &cancelled, &result)) != 0)
      return;
    if (acceptance) take_acceptance();
    if (feedback && done(rcl_action_take_feedback(&handle_, feedback_.get())) == 0)
      tell(RTM_FEEDBACK, {feedback_->feedback.sequence, nullptr, 0});
    rmw_request_id_t answered{};
    if (result && done(rcl_action_take_result_response(&handle_, &answered, result_.get())) == 0 &&
        result_->status == GOAL_STATE_SUCCEEDED)
      tell(RTM_RESULT, view(result_->result));
    if (status) done(rcl_action_take_status(&handle_, statuses_.get()));  // else it would stay ready
  }
  int call(const rtm_message& goal) noexcept override {
    ++last_id_;  // the action is this client's alone
    std::memcpy(goal_->goal_id.uuid, &last_id_, sizeof last_id_);
    set(goal_->goal, goal);
    const std::lock_guard<std::mutex> lock(mutex_);  // the answer may be there before its number is known
    std::int64_t number = 0;
    if (done(rcl_action_send_goal_request(&handle_, goal_.get(), &number)) != 0) return -1;
    given_[place_of(number)] = {number, last_id_, goal.sequence};
    return 0;
  }

 private:
  struct Given {
    std::int64_t number = -1;  // of the request that gave the goal
    std::uint64_t id = 0, sequence = 0;
  };

  std::size_t place_of(std::int64_t number) const { return static_cast<std::size_t>(number) % given_.size(); }
  void tell(rtm_reply what, const rtm_message& message) { on_reply_(user_, what, &message); }

  void take_acceptance() {
    rmw_request_id_t answered{};
    if (done(rcl_action_take_goal_response(&handle_, &answered, acceptance_.get())) != 0) return;
    std::unique_lock<std::mutex> lock(mutex_);
    const Given goal = given_[place_of(answered.sequence_number)];
    lock.unlock();
    if (!acceptance_->accepted || goal.number != answered.sequence_number) return;
    tell(RTM_ACCEPTED, {goal.sequence, nullptr, 0});
    std::memcpy(question_->goal_id.uuid, &goal.id, sizeof goal.id);
    std::int64_t number = 0;
    done(rcl_action_send_result_request(&handle_, question_.get(), &number));
  }

  const std::string name_;
  rcl_node_t* const node_;
  const rcl_action_client_options_t options_ = rcl_action_client_get_default_options();
  rcl_action_client_t handle_ = rcl_action_get_zero_initialized_client();
  Goal goal_;  // who gives and who takes may be two threads
  Acceptance acceptance_;
  Feedback feedback_;
  Question question_;
  Result result_;
  Statuses statuses_;
  std::mutex mutex_;
  std::array<Given, 4096> given_;  // the latest
  std::uint64_t last_id_ = 0;
  const rtm_on_reply on_reply_;
  void* const user_;
};

// Keeps results until rcl_action forgets their goals, as client libraries do. Nobody cancels.
class ActionServer final : public RequestEnd {
 public:
  ActionServer(const Place& at, rtm_on_message on_request, void* user)
      : name_("action " + at.name), node_(at.node), on_request_(on_request), user_(user) {
    make_room(goal_->goal, at.run.payload_bytes);
    make_room(result_->result, at.run.payload_bytes);
    check(rcl_action_server_init(&handle_, node_, at.clock, type_support(),
                                 rtmeter_ros::topic_name(at.run, at.name).c_str(), &options_),
          name_);
  }
  ActionServer(const ActionServer&) = delete;
  ActionServer& operator=(const ActionServer&) = delete;
  ~ActionServer() override {
    for (auto& known : known_) done(rcl_action_goal_handle_fini(&known.second.handle));
    done(rcl_action_server_fini(&handle_, node_));
  }

  Room room() const override { return room_by(rcl_action_server_wait_set_get_num_entities, handle_, name_); }
  rtmeter_common::EndFacts facts() const override {
    return rtmeter_ros::request_facts(name_, options_.goal_service_qos, false);
  }

  rcl_ret_t add_to(rcl_wait_set_t& wait_set) noexcept override {
    return rcl_action_wait_set_add_action_server(&wait_set, &handle_, nullptr);
  }
  void take(const rcl_wait_set_t& ready) noexcept override {
    bool goal = false, cancel = false, question = false, old = false;
    if (done(rcl_action_server_wait_set_get_entities_ready(&ready, &handle_, &goal, &cancel, &question,
                                                           &old)) != 0)
      return;
    if (goal) take_goal();
    if (question) take_question();
    if (old) forget();
  }
  int reply(rtm_reply what, const rtm_message& message) noexcept override {
    if (what == RTM_FEEDBACK) {
      feedback_->goal_id = goal_->goal_id;
      feedback_->feedback.sequence = message.sequence;
      return done(rcl_action_publish_feedback(&handle_, feedback_.get()));
    }
    under_way_->sequence = message.sequence;
    under_way_->payload.assign(message.data, message.data + message.bytes);
    const int result = done(rcl_action_update_goal_state(&under_way_->handle, GOAL_EVENT_SUCCEED));
    return result | publish_statuses() | done(rcl_action_notify_goal_done(&handle_));
  }

 private:
  using Id = std::array<std::uint8_t, UUID_SIZE>;
  struct Known {
    rcl_action_goal_handle_t handle{};
    std::uint64_t sequence = 0;
    std::vector<std::uint8_t> payload;
  };
  static Id id_of(const unique_identifier_msgs__msg__UUID& id) {
    Id copy{};
    std::copy(std::begin(id.uuid), std::end(id.uuid), copy.begin());
    return copy;
  }

  // Accepts it; the errand is done when on_request returns.
  void take_goal() {
    rmw_request_id_t asked{};
    if (done(rcl_action_take_goal_request(&handle_, &asked, goal_.get())) != 0) return;
    acceptance_->accepted = true;
    if (done(rcl_action_send_goal_response(&handle_, &asked, acceptance_.get())) != 0) return;
    rcl_action_goal_info_t info = rcl_action_get_zero_initialized_goal_info();
    info.goal_id = goal_->goal_id;
    const rcl_action_goal_handle_t* made = rcl_action_accept_new_goal(&handle_, &info);
    if (made == nullptr) {
      rcl_reset_error();
      return;
    }
    under_way_ = &known_[id_of(info.goal_id)];
    under_way_->handle = *made;  // what rcl_action forgets is its copy of the handle, not what it leads to
    done(rcl_action_update_goal_state(&under_way_->handle, GOAL_EVENT_EXECUTE));
    publish_statuses();
    const rtm_message message = view(goal_->goal);
    on_request_(user_, &message);
  }

  void take_question() {
    rmw_request_id_t asked{};
    if (done(rcl_action_take_result_request(&handle_, &asked, question_.get())) != 0) return;
    const auto found = known_.find(id_of(question_->goal_id));
    result_->status = GOAL_STATE_UNKNOWN;
    if (found != known_.end()) {
      const Known& goal = found->second;
      result_->status = GOAL_STATE_SUCCEEDED;
      set(result_->result,
          {goal.sequence, goal.payload.data(), static_cast<std::uint32_t>(goal.payload.size())});
    }
    done(rcl_action_send_result_response(&handle_, &asked, result_.get()));
  }

  void forget() {
    rcl_action_goal_info_t info = rcl_action_get_zero_initialized_goal_info();
    std::size_t many = 0;
    while (done(rcl_action_expire_goals(&handle_, &info, 1, &many)) == 0 && many != 0) {
      const auto found = known_.find(id_of(info.goal_id));
      if (found == known_.end()) continue;
      done(rcl_action_goal_handle_fini(&found->second.handle));
      known_.erase(found);
    }
  }

  // Of all goals that are known.
  int publish_statuses() {
    rcl_action_goal_status_array_t all = rcl_action_get_zero_initialized_goal_status_array();
    if (done(rcl_action_get_goal_status_array(&handle_, &all)) != 0) return -1;
    const int result = done(rcl_action_publish_status(&handle_, &all.msg));
    return done(rcl_action_goal_status_array_fini(&all)) | result;
  }

  const std::string name_;
  rcl_node_t* const node_;
  const rcl_action_server_options_t options_ = rcl_action_server_get_default_options();
  rcl_action_server_t handle_ = rcl_action_get_zero_initialized_server();
  Goal goal_;
  Acceptance acceptance_;
  Feedback feedback_;
  Question question_;
  Result result_;
  std::map<Id, Known> known_;
  Known* under_way_ = nullptr;  // the goal that was taken last
  const rtm_on_message on_request_;
  void* const user_;
};

}  // namespace

std::unique_ptr<RequestEnd> make_action_client(const Place& at, rtm_on_reply on_reply, void* user) {
  return std::make_unique<ActionClient>(at, on_reply, user);
}

std::unique_ptr<RequestEnd> make_action_server(const Place& at, rtm_on_message on_request, void* user) {
  return std::make_unique<ActionServer>(at, on_request, user);
}

}  // namespace rtmeter_rcl
