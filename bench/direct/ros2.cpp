// The smallest round trip over rclcpp: best effort, keep last 1; each end spins its node.
#include <unistd.h>

#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <rtmeter_msgs/msg/message.hpp>
#include <thread>

#include "ping_pong.hpp"

using rtmeter_msgs::msg::Message;

int main(int argc, char** argv) {
  const direct::Plan plan = direct::plan(argc, argv);
  rclcpp::init(0, nullptr);
  const auto node = std::make_shared<rclcpp::Node>(plan.is_ping ? "direct_ping" : "direct_pong");
  const auto qos = rclcpp::QoS(1).best_effort();
  direct::Trips trips(plan);
  const auto publisher = node->create_publisher<Message>(plan.is_ping ? "/ping" : "/pong", qos);
  const auto subscription = node->create_subscription<Message>(plan.is_ping ? "/pong" : "/ping", qos,
                                                               [&](std::shared_ptr<const Message> message) {
                                                                 if (plan.is_ping)
                                                                   trips.came(message->sequence);
                                                                 else
                                                                   publisher->publish(*message);
                                                               });
  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(node);
  if (!plan.is_ping) {
    executor.spin();
    return 0;
  }
  while (publisher->get_subscription_count() == 0 || subscription->get_publisher_count() == 0) usleep(1000);
  usleep(500000);  // the other side may be a little later
  Message message;
  message.payload.resize(direct::kPayload);
  std::thread([&] { executor.spin(); }).detach();
  trips.ping([&](std::size_t n) {
    message.sequence = n;
    publisher->publish(message);
  });
}
