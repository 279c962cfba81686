// Hears what ends a run, whoever hogs the CPUs: a service thread that sleeps until then, at the highest
// priority that is permitted, and lends that priority to the threads that must end the run.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "system/service_thread.hpp"

namespace rtmeter {

// What asks for the end: SIGINT, SIGTERM, and SIGHUP unless it is ignored, as nohup has it.
sigset_t ending_signals() noexcept;

// Gives a thread the highest real-time priority that is permitted; false if none is.
bool put_first(int tid) noexcept;

// N of the last "go N" that standard input has told, 0 until then: of a chain when its first release is, and
// later, once it has been set to 0 again, when all has ended; of a discovery when it begins
// (CLOCK_MONOTONIC). Of others beside a round trip 1 once all have heard each other, -1 once the client has
// ended.
std::atomic<std::int64_t>& told_to_go() noexcept;

class Guard {
 public:
  static constexpr std::int64_t kStarvedNs = 10'000'000'000;

  // on_request: a signal, or standard input closing (watch_stdin), asks for the end; called on the guard's
  // thread, once `helpers` have been put first. Signals must be blocked in every thread. Throws Failure
  // where its files or its thread cannot be had.
  Guard(bool watch_stdin, const std::vector<int>& avoid_cpus, std::vector<int> helpers,
        std::function<void()> on_request);
  ~Guard();  // joins
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // The helpers are alive; without it for kStarvedNs they have no CPU, and are put first until they are
  // heard again.
  void alive() noexcept;
  // How often that was.
  int rescues() const noexcept { return rescues_.load(); }
  int tid() const noexcept { return thread_->tid(); }

 private:
  void run();
  void put_helpers_first() const noexcept;
  void put_helpers_back() const noexcept;

  const bool watch_stdin_;
  const std::vector<int> helpers_;
  const std::function<void()> on_request_;
  int signals_, starved_, done_;  // signalfd, timerfd, eventfd
  std::atomic<bool> asked_{false}, lent_{false};
  std::atomic<int> rescues_{0};
  std::unique_ptr<ServiceThread> thread_;
};

}  // namespace rtmeter
