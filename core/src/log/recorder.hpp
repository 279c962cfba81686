// From the measured thread to the sample log: a preallocated single-producer single-consumer ring of
// rows, drained by a normal-priority thread into a RowSink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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
  void record(const std::int64_t* row) noexcept;

  // Drains the ring, flushes the log and joins the writer. Idempotent. A middleware may still call back
  // then: rows that are handed over from now on go nowhere, and do not count as recorded.
  void finish();

  std::uint64_t recorded() const noexcept;       // rows accepted; once finished, all are in the log
  std::uint64_t overflow() const noexcept;       // rows lost to a full ring
  std::size_t high_water() const noexcept;       // fullest the ring has been, rows
  std::size_t ring_rows() const noexcept;
  int writer_tid() const noexcept;               // 0 unless it runs
  // True once the log could not be written (disk full); the measured loop should end.
  bool failed() const noexcept;
  std::string failure() const;                   // why, after finish()

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rtmeter
