// The service thread beside the writer: watchdog, progress lines, and the end of a run that does not end by
// itself. A guard hears signals and standard input for it, and sees that it gets a CPU.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "measure/measurement.hpp"
#include "system/guard.hpp"
#include "system/service_thread.hpp"

namespace rtmeter {

class Supervisor {
 public:
  // From the moment when a run shall end, or last settled a release, until it is given up, and as long again
  // for what then remains.
  static constexpr std::int64_t kPatienceNs = 5'000'000'000;
  // For the middleware's own end, after a run that was complete.
  static constexpr std::int64_t kFarewellNs = 30'000'000'000;

  // Without a settled release, besides what a measurement may wait for one: the run is ended as hanging.
  static constexpr std::int64_t kSilenceNs = 30'000'000'000;

  // Blocks the ending signals in the calling thread and all it starts from now on, and lets through the one
  // that ends its sleeps.
  static void block_signals();

  struct Duties {
    std::atomic<bool>& stop;          // set when the run shall end
    const Watchdog& watchdog;         // interrupt when the clock passes it
    bool watch_stdin;                 // standard input closing ends the run
    int writer_tid;                   // needed to end the run
    std::atomic<int>& rescues;        // how often it and this were put first for want of a CPU
    std::function<std::uint64_t()> settled;  // what grows while the measured thread still settles
    std::function<void()> interrupt;  // makes the middleware's spin return; must be thread-safe
    std::function<void()> progress;   // prints a progress line
    std::function<void()> give_up;    // does not return if it ends the process
  };

  Supervisor(Duties duties, const std::vector<int>& avoid_cpus);
  ~Supervisor();  // joins
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // What was measured is being kept; from now on kPatienceNs (after a stop) or kFarewellNs are left.
  void expect_end() noexcept { ending_.store(true); }

  std::vector<int> tids() const { return {thread_->tid(), guard_->tid()}; }

 private:
  void end() noexcept;
  void run();
  void tick();

  Duties duties_;
  pthread_t measured_;
  std::atomic<bool> ending_{false};
  std::int64_t stopping_since_ns_ = 0, ending_since_ns_ = 0;  // 0: not
  std::uint64_t settled_ = 0;
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
  std::atomic<Guard*> heard_by_{nullptr};
  std::unique_ptr<ServiceThread> thread_;
  std::unique_ptr<Guard> guard_;
};

}  // namespace rtmeter
