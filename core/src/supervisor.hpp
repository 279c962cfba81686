// The service thread beside the writer: signals, standard input, watchdog, progress lines.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "measurement.hpp"
#include "service_thread.hpp"

namespace rtmeter {

class Supervisor {
 public:
  static constexpr std::int64_t kPatienceNs = 5'000'000'000;

  // Blocks the ending signals in the calling thread and all it starts from now on, and lets through the one
  // that ends its sleeps.
  static void block_signals();

  struct Duties {
    std::atomic<bool>& stop;          // set when the run shall end
    const Watchdog& watchdog;         // interrupt when the clock passes it
    bool watch_stdin;                 // standard input closing ends the run
    std::function<void()> interrupt;  // makes the middleware's spin return; must be thread-safe
    std::function<void()> progress;   // prints a progress line
    std::function<void()> give_up;    // the run does not end although it shall, for kPatienceNs
  };

  Supervisor(Duties duties, const std::vector<int>& avoid_cpus);
  ~Supervisor();  // joins
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  int tid() const noexcept { return thread_->tid(); }

 private:
  void run();
  void tick();
  bool requested(int signals);

  Duties duties_;
  pthread_t measured_;
  std::atomic<bool> done_{false};
  bool stdin_open_ = true;
  std::int64_t stopping_since_ns_ = 0;  // 0: not
  std::unique_ptr<ServiceThread> thread_;
};

}  // namespace rtmeter
