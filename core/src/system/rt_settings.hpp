// Real-time settings of threads and memory: set, then read back. A setting that did not take throws
// Failure naming the field, the value, the limit in the way and how to raise it. Setup only.
#pragma once

#include <sched.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json/json.hpp"

namespace rtmeter {

struct Scheduling {
  enum class Policy { other, fifo, rr, deadline, batch, idle, unknown } policy = Policy::other;
  int priority = 0;  // fifo, rr: 1-99
  std::int64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;  // deadline
  bool operator==(const Scheduling&) const = default;
};

std::string to_string(const Scheduling& s);  // "fifo:80", "deadline:1ms/2ms/2ms", "other"
Json to_json(const Scheduling& s);           // as in spec/probe.md
Scheduling scheduling_from_json(const Json& j, const std::string& field);  // throws Failure

void set_scheduling(int tid, const Scheduling& wanted, const std::string& field);  // tid 0: caller
Scheduling get_scheduling(int tid);
bool read_scheduling(int tid, Scheduling& into) noexcept;  // false: errno
// CPU that does not exist: Failure
void set_affinity(int tid, const std::vector<int>& cpus, const std::string& field = "cpus");
std::vector<int> get_affinity(int tid);
// Room for 8192 CPUs: the kernel refuses to fill a mask shorter than its own.
using CpuMask = std::array<cpu_set_t, 8>;
CpuMask mask_of(const std::vector<int>& cpus);
std::vector<int> cpus_in(const CpuMask& mask);
std::optional<std::int64_t> get_timer_slack_ns(int tid);   // nullopt if it cannot be read

void lock_memory();  // mlockall(MCL_CURRENT | MCL_FUTURE), verified by VmLck
void prefault_stack(std::int64_t bytes);
// All threads allocate from one heap (M_ARENA_MAX), so that prefault_heap() reaches each of them: before the
// first thread allocates.
void share_one_heap();
void prefault_heap(std::int64_t bytes);  // also keeps the heap: M_TRIM_THRESHOLD, M_MMAP_MAX

// Holds /dev/cpu_dma_latency at 0 for its lifetime.
class CpuDmaLatency {
 public:
  CpuDmaLatency();  // throws Failure
  ~CpuDmaLatency();
  CpuDmaLatency(const CpuDmaLatency&) = delete;
  CpuDmaLatency& operator=(const CpuDmaLatency&) = delete;

 private:
  int fd_;
};

struct ThreadFacts {
  int tid = 0;
  std::string name;
  std::string role;  // measured, service, middleware
  bool stamps = false;  // messages
  Scheduling scheduling;
  std::vector<int> cpus;
  std::optional<std::int64_t> timer_slack_ns;
};

// Every thread of this process, by tid. Threads that end while it looks are left out.
// measured and service tell the roles; all others are the middleware's.
std::vector<ThreadFacts> audit_threads(const std::vector<int>& measured, const std::vector<int>& service);
Json to_json(const std::vector<ThreadFacts>& threads);

// Those that were seen after, and those seen before that have ended since, by tid.
std::vector<ThreadFacts> with_ended(const std::vector<ThreadFacts>& before, std::vector<ThreadFacts> after);

// The threads with those marked that stamp, and with those stampers that have ended since: an executor's end
// with its spin.
std::vector<ThreadFacts> with_stampers(std::vector<ThreadFacts> threads, const std::vector<int>& stamping,
                                       std::vector<ThreadFacts> stampers, const std::vector<int>& measured);

// What a thread reads of itself while it is there, without memory of its own: three system calls, and one for
// the slack.
class SelfPortrait {
 public:
  bool take() noexcept;  // of the calling thread; false if the kernel refuses
  ThreadFacts facts() const;  // role: middleware

 private:
  int tid_ = 0;
  char name_[16] = {};
  Scheduling scheduling_;
  CpuMask affinity_ = {};
  std::int64_t timer_slack_ns_ = -1;
};

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
  // Whose they are, once opened.
  int tid() const noexcept { return before_.tid; }
  Json to_json() const;  // null for what could not be read or if open and close ran on two threads
  std::optional<Json> doubt() const;  // the warning of counters that nobody could read

 private:
  struct Reading {
    int tid = 0;
    std::int64_t minor_faults = -1, major_faults = -1, voluntary = -1, involuntary = -1, migrations = -1;
  };
  static void read_usage(Reading& into) noexcept;
  std::int64_t migrations() const noexcept;
  void close_files() noexcept;
  void read_followed(Reading& into) const noexcept;
  void close_followed() noexcept;

  Reading before_, after_;
  int prepared_tid_ = 0;
  int proc_fd_ = -1;     // the scheduler's counters of the thread
  int counter_fd_ = -1;  // perf counter of migrations, where /proc does not tell them
  int followed_ = 0;     // 0: nobody
  int stat_fd_ = -1, status_fd_ = -1, sched_fd_ = -1;  // of the thread followed, in /proc
};

// hostname, kernel, … (spec/probe.md, `machine`)
Json machine_facts();
// CLOCK_MONOTONIC, _RAW, BOOTTIME and REALTIME read together.
Json clock_anchors();

}  // namespace rtmeter
