// rclcpp's publishers and subscriptions, as the measurements need them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <string>

#include "../common/ros/rmw.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_ros2 {

// Requests go over no topic: what is an option of topics is refused there, unread.
inline bool has_topics(const rtm_run& run) { return run.measurement != RTM_REQUEST; }

// How a run sends and receives.
struct EndpointSettings {
  explicit EndpointSettings(const rtm_run& run);  // throws SetupError for options that exclude each other

  rtm_run run;
  rclcpp::QoS qos;
  bool intra_process, loan, tlsf;
};

// One of the two ends of a topic.
class Port {
 public:
  virtual ~Port() = default;
  virtual rtmeter_common::EndFacts facts() const = 0;

 protected:
  explicit Port(std::string name) : name_(std::move(name)) {}
  // What rclcpp calls when a peer cannot be matched.
  template <typename Info>
  auto on_refusal() {
    return [this](Info& info) { refused_.store(info.last_policy_kind); };
  }
  rtmeter_common::EndFacts facts_with(const rclcpp::QoS& qos, std::size_t matched) const {
    rtmeter_common::EndFacts facts;
    facts.name = name_;
    rtmeter_ros::add_policies(qos.get_rmw_qos_profile(), facts);
    facts.matched = matched;
    facts.incompatible = rtmeter_ros::policy_name(refused_.load());
    return facts;
  }

 private:
  const std::string name_;
  std::atomic<rmw_qos_policy_kind_t> refused_{RMW_QOS_POLICY_INVALID};
};

class Publisher : public Port {
 public:
  using Port::Port;
  virtual void publish(const rtm_message& message) = 0;  // measured path; may throw
  virtual std::size_t matched() const = 0;
};

std::unique_ptr<Publisher> make_publisher(rclcpp::Node& node, const rclcpp::CallbackGroup::SharedPtr& group,
                                          const EndpointSettings& settings, const std::string& topic);

std::unique_ptr<Port> make_subscription(rclcpp::Node& node, const rclcpp::CallbackGroup::SharedPtr& group,
                                        const EndpointSettings& settings, const std::string& topic,
                                        rtm_on_message on_message, void* user);

// Executors allocate with TLSF too, where the run does.
rclcpp::ExecutorOptions executor_options(const EndpointSettings& settings);

}  // namespace rtmeter_ros2
