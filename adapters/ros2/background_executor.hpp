// What serves callbacks that are not measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <thread>

namespace rtmeter_ros2 {

// A single-threaded executor on a thread of its own, named ros2-background.
class BackgroundExecutor {
 public:
  BackgroundExecutor() : thread_([this] { run(); }) {
    pthread_setname_np(thread_.native_handle(), "ros2-background");  // here: who lists threads next finds it
  }
  BackgroundExecutor(const BackgroundExecutor&) = delete;
  BackgroundExecutor& operator=(const BackgroundExecutor&) = delete;
  ~BackgroundExecutor() {
    done_.store(true);
    while (!ended_.load()) {  // a spin that is about to begin does not heed it
      executor_.cancel();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    thread_.join();
  }

  void add(const rclcpp::Node::SharedPtr& node) { executor_.add_node(node); }

 private:
  void run() {
    while (!done_.load()) executor_.spin();
    ended_.store(true);
  }

  rclcpp::executors::SingleThreadedExecutor executor_;
  std::atomic<bool> done_{false}, ended_{false};
  std::thread thread_;
};

}  // namespace rtmeter_ros2
