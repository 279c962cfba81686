#include "executors.hpp"

#if __has_include(<rclcpp/executors/static_single_threaded_executor.hpp>)
#include <rclcpp/executors/static_single_threaded_executor.hpp>
#define RTMETER_STATIC_SINGLE_THREADED
#endif
#if __has_include(<rclcpp/experimental/executors/events_executor/events_executor.hpp>)
#include <rclcpp/experimental/executors/events_executor/events_executor.hpp>
#define RTMETER_EVENTS
#endif
#if __has_include(<rclcpp/executors/events_cbg_executor/events_cbg_executor.hpp>)
#include <rclcpp/executors/events_cbg_executor/events_cbg_executor.hpp>
#define RTMETER_EVENTS_CBG
#endif

#include <algorithm>
#include <vector>

#include "options.hpp"

namespace rtmeter_ros2 {
namespace {

using Executor = std::unique_ptr<rclcpp::Executor>;

struct Kind {
  const char* name;
  const char* type;
  bool has_threads;
  Executor (*make)(const rclcpp::ExecutorOptions&, std::size_t threads);  // null: this rclcpp has none
};

template <typename T>
Executor with_one_thread(const rclcpp::ExecutorOptions& options, std::size_t /*threads*/) {
  return std::make_unique<T>(options);
}
template <typename T>
Executor with_threads(const rclcpp::ExecutorOptions& options, std::size_t threads) {
  return std::make_unique<T>(options, threads);
}
Executor with_events(const rclcpp::ExecutorOptions& options, std::size_t /*threads*/) {
#ifdef RTMETER_EVENTS
  using rclcpp::experimental::executors::EventsExecutor;
  using rclcpp::experimental::executors::SimpleEventsQueue;
  return std::make_unique<EventsExecutor>(std::make_unique<SimpleEventsQueue>(), false, options);
#else
  return nullptr;
#endif
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"single_threaded", "SingleThreadedExecutor", false,
       &with_one_thread<rclcpp::executors::SingleThreadedExecutor>},
      {"multi_threaded", "MultiThreadedExecutor", true,
       &with_threads<rclcpp::executors::MultiThreadedExecutor>},
#ifdef RTMETER_STATIC_SINGLE_THREADED
      {"static_single_threaded", "StaticSingleThreadedExecutor", false,
       &with_one_thread<rclcpp::executors::StaticSingleThreadedExecutor>},
#else
      {"static_single_threaded", "StaticSingleThreadedExecutor", false, nullptr},
#endif
#ifdef RTMETER_EVENTS
      {"events", "EventsExecutor", false, &with_events},
#else
      {"events", "EventsExecutor", false, nullptr},
#endif
#ifdef RTMETER_EVENTS_CBG
      {"events_cbg", "EventsCBGExecutor", true, &with_threads<rclcpp::executors::EventsCBGExecutor>},
#else
      {"events_cbg", "EventsCBGExecutor", true, nullptr},
#endif
  };
  return all;
}

const Kind& kind_of(const std::string& name) {
  const auto is_it = [&name](const Kind& kind) { return kind.name == name; };
  return *std::find_if(kinds().begin(), kinds().end(), is_it);
}

}  // namespace

std::vector<std::string> executor_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds())
    if (kind.make != nullptr) names.emplace_back(kind.name);
  return names;
}

std::string executor_of(const rtm_run& run) {
  const std::string asked = kOptions.executor.text_or(run, "");
  for (const Kind& kind : kinds())
    if (kind.name == asked && kind.make == nullptr)
      throw kOptions.executor.error(
          asked, std::string("rclcpp ") + RTMETER_RCLCPP_VERSION + " has no " + kind.type,
          "choose one of " + rtmeter_common::joined(kOptions.executor.words(), ", "));
  return kOptions.executor.of(run);
}

std::unique_ptr<rclcpp::Executor> make_executor(const std::string& name, std::size_t threads,
                                                const rclcpp::ExecutorOptions& options) {
  return kind_of(name).make(options, threads);
}

std::size_t executor_threads(const rtm_run& run, const std::string& executor) {
  const rtmeter::Number& option = kOptions.executor_threads;
  if (option.given(run) && !kind_of(executor).has_threads)
    throw option.error(option.text_or(run, ""), "the executor " + executor + " has one thread",
                       "leave it out, or choose option executor=multi_threaded");
  return static_cast<std::size_t>(option.of(run, 0));
}

}  // namespace rtmeter_ros2
