// A middleware's periodic timer, run until its client has seen enough: what timer (periodic) and
// cycle (drive spin) share.
#pragma once

#include "measure/measurement.hpp"
#include "measure/ticks.hpp"

namespace rtmeter {

class PeriodicTimer {
 public:
  class Client {
   public:
    virtual ~Client() = default;
    // Release k is served by a callback stamped now_ns; k below the last one means a surplus callback.
    // True when the client has seen enough. Measured path.
    virtual bool on_tick(std::int64_t k, std::int64_t now_ns, const rtm_fire& fire) noexcept = 0;
  };

  PeriodicTimer(Bench& bench, Client& client);

  // Setup; Failure if the timer cannot have the overrun policy asked for.
  void create(void* node);
  // Starts the timer and drives it until the client has seen enough, stop is set, or nothing was heard
  // for ten periods and ten seconds. The client is not called any more once it returns, also by a timer
  // that calls back on a thread of its own and goes on. Measured path.
  void run() noexcept;

  const Grid& grid() const noexcept { return ticks_.grid(); }
  std::int64_t release_ns(std::int64_t k) const noexcept { return grid().release_ns(k); }
  const char* grid_from() const noexcept {
    return b_.drive == RTM_SLEEP_THEN_SPIN_SOME ? "core" : ticks_.t0_from();
  }
  bool grid_known() const noexcept { return ticks_.known(); }
  Json facts() const;
  Json::Array warnings() const;

 private:
  static void on_fire(void* user, const rtm_fire* fire);
  void serve(std::int64_t now_ns, const rtm_fire& fire) noexcept;
  void close() noexcept;
  void spin() noexcept;
  void poll() noexcept;
  void note_silence() noexcept;
  void sleep_then_spin_some() noexcept;
  bool over() const noexcept {
    return done_.load(std::memory_order_relaxed) || b_.stop.load(std::memory_order_relaxed);
  }
  std::int64_t silence_ns() const noexcept { return 10 * b_.config.period_ns + 10'000'000'000; }

  Bench& b_;
  Client& client_;
  void* timer_ = nullptr;
  rtm_timer_traits traits_{};
  Ticks ticks_;
  std::atomic<std::int64_t> heard_ns_{0};  // the latest callback
  std::atomic<bool> done_{false}, in_callback_{false};
  bool silent_ = false;
};

}  // namespace rtmeter
