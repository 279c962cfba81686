// What a thread used while it was measured: processor time, faults, context switches, migrations.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "json/json.hpp"

namespace rtmeter {

// Counters of one thread over a window: of the one that calls open() and close(), just outside the window,
// or of another that it follows. Neither call allocates or faults, and where prepare() or follow() was called
// neither opens anything. Construct it beforehand: that prepares the calling thread.
class UsageWindow {
 public:
  UsageWindow();
  ~UsageWindow();
  UsageWindow(const UsageWindow&) = delete;
  UsageWindow& operator=(const UsageWindow&) = delete;
  // Opens what open() and close() will read of the calling thread: well before the window.
  void prepare() noexcept;
  // From now on the counters are this thread's. Not on the measured path.
  void follow(int tid) noexcept;
  void open() noexcept;
  void close() noexcept;
  // What was counted is not the thread's that it should be: nothing is known.
  void disown() noexcept { before_.tid = 0; }
  // Counts these too, from before open() on; they have to live as long.
  void count_overruns(const std::atomic<std::int64_t>& overruns) noexcept { overruns_ = &overruns; }
  // Whose they are, once opened.
  int tid() const noexcept { return before_.tid; }
  // Any thread. Null for what could not be read, where open and close ran on two threads, and before close.
  Json to_json() const;
  std::optional<Json> doubt() const;  // the warning of counters that nobody could read

 private:
  struct Reading {
    int tid = 0;
    std::int64_t cpu_ns = -1, overruns = -1;
    std::int64_t minor_faults = -1, major_faults = -1, voluntary = -1, involuntary = -1, migrations = -1;
  };
  static void read_usage(Reading& into) noexcept;
  std::int64_t migrations() const noexcept;
  void close_files() noexcept;
  void read_followed(Reading& into) const noexcept;
  void close_followed() noexcept;

  Reading before_, after_;
  const std::atomic<std::int64_t>* overruns_ = nullptr;  // of a deadline policy
  std::atomic<bool> closed_{false};  // from then on both are there for any thread
  int prepared_tid_ = 0;
  int proc_fd_ = -1;     // the scheduler's counters of the thread
  int counter_fd_ = -1;  // perf counter of migrations, where /proc does not tell them
  int followed_ = 0;     // 0: nobody
  int stat_fd_ = -1, status_fd_ = -1, sched_fd_ = -1, schedstat_fd_ = -1;  // of the thread followed, in /proc
};

}  // namespace rtmeter
