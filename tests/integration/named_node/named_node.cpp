// A node of rclcpp as ../named_node.py is one of rclpy: the same callbacks, recorded in the same way.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <rcl_interfaces/srv/list_parameters.hpp>
#include <rclcpp/rclcpp.hpp>
#include <rosgraph_msgs/msg/clock.hpp>
#include <string>

using Message = rosgraph_msgs::msg::Clock;
using Service = rcl_interfaces::srv::ListParameters;
using std::chrono::steady_clock;

int main(int argc, char** argv) {
  rclcpp::init(argc, argv);
  const auto node = std::make_shared<rclcpp::Node>("arm", "/left");
  std::ofstream out(argv[1]);  // a line per call, as it comes: it may be killed
  const auto stamp = [&out](const char* name) {
    const auto now = steady_clock::now();
    out << name << ' ' << now.time_since_epoch().count() << std::endl;
  };
  const auto publisher = node->create_publisher<Message>("tick", 10);
  const auto raw_publisher = node->create_publisher<Message>("raw", 10);
  const auto client = node->create_client<Service>("ask");
  const auto fast = node->create_wall_timer(std::chrono::milliseconds(20), [&] { stamp("fast"); });
  const auto slow = node->create_wall_timer(std::chrono::milliseconds(50), [&] {
    stamp("slow");
    publisher->publish(Message());
    raw_publisher->publish(Message());
    for (int k = 0; k < 2; ++k) {  // so that an answer and the next request are there at once
      client->async_send_request(std::make_shared<Service::Request>(),
                                 [&](rclcpp::Client<Service>::SharedFuture) { stamp("answered"); });
    }
  });
  const auto heard = node->create_subscription<Message>("tick", 10, [&](const Message&) { stamp("heard"); });
  const auto heard_raw = node->create_generic_subscription(
      "raw", "rosgraph_msgs/msg/Clock", 10,
      [&](const std::shared_ptr<const rclcpp::SerializedMessage>&) { stamp("heard_raw"); });
  const auto asked = node->create_service<Service>(
      "ask", [&](Service::Request::SharedPtr, Service::Response::SharedPtr) { stamp("asked"); });
  std::puts("ready");
  std::fflush(stdout);
  rclcpp::spin(node);
}
