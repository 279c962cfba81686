// rclcpp's executors by name, as far as the installed one has them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <string>
#include <vector>

#include "rtmeter/adapter.hpp"

namespace rtmeter_ros2 {

// The names of those it has, default first.
std::vector<std::string> executor_names();

// Option executor. Throws SetupError for one that this rclcpp lacks.
std::string executor_of(const rtm_run& run);

// threads: of one that has several; 0: as many as it takes by itself.
std::unique_ptr<rclcpp::Executor> make_executor(const std::string& name, std::size_t threads,
                                                const rclcpp::ExecutorOptions& options);

// Option executor_threads; 0 if it is not given. Throws SetupError with an executor that has one thread only.
std::size_t executor_threads(const rtm_run& run, const std::string& executor);

}  // namespace rtmeter_ros2
