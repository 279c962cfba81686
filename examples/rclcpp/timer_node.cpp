// A node of rclcpp whose timer is recorded: timer_node FOLDER RELEASES
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <rtmeter/loop.hpp>

using namespace std::chrono_literals;

class Controller : public rclcpp::Node {
 public:
  Controller(rtmeter::OwnLoop& loop, long releases) : Node("controller"), loop_(loop), left_(releases) {
    timer_ = create_wall_timer(10ms, [this] { control(); });
  }

 private:
  void control() {
    loop_.wake();  // the grid is that of the earliest callback
    if (--left_ == 0) rclcpp::shutdown();
    loop_.done();
  }

  rtmeter::OwnLoop& loop_;
  long left_;
  rclcpp::TimerBase::SharedPtr timer_;
};

int main(int argc, char** argv) {
  rclcpp::init(argc, argv);
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " FOLDER RELEASES\n";
    return 1;
  }
  rtmeter::OwnLoopOptions options;
  options.folder = argv[1];
  options.miss_ratio = 0.5;
  options.warm_up = 50ms;
  rtmeter::OwnLoop loop("rclcpp-timer", 10ms, options);
  rclcpp::spin(std::make_shared<Controller>(loop, std::atol(argv[2])));
  loop.close();
  return 0;
}
