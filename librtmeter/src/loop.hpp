// A program's own loop, recorded: the measured path of librtmeter, and what stands around it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "keeper.hpp"
#include "log/recorder.hpp"
#include "measure/ticks.hpp"
#include "rtmeter/clock.hpp"
#include "rtmeter/loop.h"
#include "start.hpp"
#include "system/kernel_trace.hpp"

namespace rtmeter {

class Loop {
 public:
  // Throws Failure.
  Loop(const std::string& name, std::int64_t period_ns, const rtm_loop_options& options);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Measured path: no allocation, lock, system call or page fault, but for the one sleep, and for what the
  // program asked for when a release is late.
  std::int64_t sleep() noexcept;
  void wake(std::int64_t now_ns, std::int64_t due_ns) noexcept;
  void done(std::int64_t now_ns) noexcept;
  std::int64_t now_ns() noexcept { return clock_.now_ns(); }

  // Writes what is left, and of the job that is under way what is decided by now_ns; what is stamped from
  // then on goes nowhere. Throws Failure, each time it is asked.
  void end(std::int64_t now_ns);
  // In a child of the process, which has no writer: what is stamped from now on goes nowhere.
  void disown() noexcept;
  bool inherited() const noexcept { return inherited_; }
  int writer_tid() const noexcept { return recorder_.writer_tid(); }
  const std::string& folder() const noexcept { return start_.path(); }

 private:
  using Count = std::atomic<std::uint64_t>;
  static void add_one(Count& count) noexcept {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void begin(std::int64_t due_ns) noexcept;
  void abandon() noexcept;
  std::int64_t status_of(std::int64_t outcome) const noexcept {
    return k_ < warm_up_ ? outcome | kWarmUpFlag : outcome;
  }
  void hand_over(std::int64_t done_ns, std::int64_t outcome) noexcept;
  void note_late(std::int64_t k, std::int64_t release_ns, std::int64_t stamp_ns) noexcept;
  void look_at_threads();
  std::int64_t open_ns() const;
  Json last_facts() const;

  // The measured thread's.
  std::atomic<bool> over_{false};
  std::atomic<bool> working_{false};  // who ends the loop may be another thread
  bool told_ = false;
  std::int64_t k_ = 0, release_ns_ = 0, wake_ns_ = 0;
  const std::int64_t period_ns_, deadline_ns_, warm_up_, slack_ns_;
  Ticks ticks_;
  Recorder* recording_ = nullptr;
  const bool catch_up_;
  std::atomic<int> tid_{0};
  Count extra_{0}, stray_{0}, unfinished_{0}, refused_{0}, off_grid_{0};
  std::atomic<bool> never_{false};
  MonotonicClock clock_{never_};
  const std::string name_;
  void (*const on_late_)(void*, std::int64_t, std::int64_t, std::int64_t);
  void* const context_;
  const std::unique_ptr<KernelTrace> trace_;  // null unless asked for

  Start start_;
  Keeper keeper_;
  Recorder recorder_;
  std::uint64_t batches_ = 0;  // the writer's
  bool inherited_ = false, ended_ = false;
};

}  // namespace rtmeter
