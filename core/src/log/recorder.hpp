// From the measured thread to the sample log: a preallocated single-producer single-consumer ring of
// rows, drained by a normal-priority thread into a RowSink.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "log/cache_line.hpp"
#include "log/row_sink.hpp"

namespace rtmeter {

inline constexpr std::int64_t kAbsent = INT64_MIN;

// Bits 0-3 of the status column (spec/sample-log.md).
enum Status : std::int64_t { kInFlight = 0, kServed = 1, kSkipped = 2, kLost = 3, kWarmUpFlag = 128 };

// What the producer does when the ring is full: count the row as overflow (the result becomes
// invalid), or wait (scripted clock, where no time passes).
enum class WhenFull { count, wait };

// Rows that a ring needs so that neither a stall of the measured thread, whose backlog then comes at once,
// nor one of the writer loses any: two seconds at one row a period, between 32,768 rows and 64 MiB.
std::size_t ring_rows_for(std::int64_t period_ns, std::size_t columns);

// How long a stall of either so many rows hold at a row a period; the longest time there is if longer.
std::int64_t holds_ns(std::size_t rows, std::int64_t period_ns);

class Recorder {
 public:
  // Called by the writer thread for every batch of rows it drains (row-major, `columns` values a row).
  using Tap = std::function<void(const std::int64_t* rows, std::size_t count)>;

  // ring_rows is rounded up to a power of two; all memory is taken and touched here.
  Recorder(RowSink& log, std::size_t columns, std::size_t ring_rows, WhenFull when_full, Tap tap);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Starts the writer thread: SCHED_OTHER whatever the caller's policy, on every CPU but
  // `avoid_cpus` (all CPUs if none is left), all signals blocked, small stack, named "rtm-writer".
  void start(const std::vector<int>& avoid_cpus);

  // Hands one row of `columns` values over. Measured path: no lock, system call or allocation.
  // One producer at a time.
  void record(const std::int64_t* row) noexcept {
    const std::uint64_t head = ring_.head.load(std::memory_order_relaxed);
    if (head - ring_.known_tail > ring_.mask && !make_room(head)) {
      ring_.overflow.store(ring_.overflow.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    const std::size_t columns = ring_.columns;
    // Word by word, which volatile keeps: a call of memcpy reaches through lines that a sleep has emptied
    // from the caches, and a wider load waits for the stores of the row that were just made.
    volatile std::int64_t* to = ring_.slot(head);
    for (std::size_t i = 0; i < columns; ++i) to[i] = row[i];
    ring_.head.store(head + 1, std::memory_order_release);
    // The next row, which comes after a sleep: its lines are fetched meanwhile.
    const std::int64_t* next = ring_.slot(head + 1);
    __builtin_prefetch(next, 1);
    __builtin_prefetch(next + columns - 1, 1);
  }

  // Producer: nothing is measured any more; from now on it waits for room whatever WhenFull says, as what an
  // interrupted backlog hands over at once may be more than a ring holds.
  void wait_for_room() noexcept;
  // Rows accepted once it does; 0 before. Any thread.
  std::uint64_t settled() const noexcept;

  // Drains the ring, flushes the log and joins the writer. Idempotent. A middleware may still call back
  // then: rows that are handed over from now on go nowhere, and do not count as recorded.
  void finish();

  std::uint64_t recorded() const noexcept;       // rows accepted; once finished, all are in the log
  std::uint64_t overflow() const noexcept;       // rows lost to a full ring
  std::size_t high_water() const noexcept;       // fullest the ring has been, rows
  std::size_t ring_rows() const noexcept;
  int writer_tid() const noexcept;               // 0 until it was started
  // True once the log could not be written (disk full); the measured loop should end.
  bool failed() const noexcept;
  std::string failure() const;                   // why, after finish()

 private:
  struct Impl;

  // What a record touches besides its row's place, in one cache line.
  struct alignas(kCacheLine) Ring {
    std::int64_t* slot(std::uint64_t row) const {
      return rows + (static_cast<std::size_t>(row) & mask) * columns;
    }

    const std::size_t columns;
    const std::size_t mask;  // the number of rows, less one
    std::int64_t* rows = nullptr;
    std::atomic<std::uint64_t> head{0};  // rows handed over
    std::uint64_t known_tail = 0;        // rows taken when the producer last looked
    std::atomic<std::uint64_t> overflow{0};
  };

  // Measured path, when the ring seemed full: true once there is room; false if the row is lost.
  [[gnu::cold]] bool make_room(std::uint64_t head) noexcept;

  Ring ring_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rtmeter
