// What is kept of a loop's rows on a bounded disk: the last hours whole, each late release with what
// surrounds it for good, and bins of everything (docs/your-own-loop.md). The writer thread's alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "bins.hpp"
#include "json/json.hpp"
#include "log/log_writer.hpp"

namespace rtmeter {

// A row as the measured thread hands it over; jobs that were skipped have none.
struct JobRow {
  enum : std::size_t { k, release, wake, done, status, kColumns };
};

struct Keeping {
  std::string folder;           // where the files go: it is there
  std::int64_t period_ns = 0, deadline_ns = 0, warm_up = 0;
  std::int64_t whole_ns = 0;    // the last releases that are kept whole
  std::int64_t late_bytes = 0;  // for late releases
  Json header;                  // of every sample log here, without what differs
};

// Removes what the starts of this program before that of `folder` kept whole, where it is older than
// whole_ns.
void drop_whole_logs_of_earlier_starts(const std::string& folder, std::int64_t whole_ns);

class Keeper final : public RowSink {
 public:
  static constexpr std::int64_t kSurroundings = 64;      // releases before and after a late one
  static constexpr std::int64_t kSegments = 8;           // of the last hours: the oldest one goes at once
  static constexpr std::int64_t kBlockNs = 300'000'000'000;

  // Begins the first log. Throws Failure.
  explicit Keeper(Keeping keeping);
  ~Keeper() override;

  void append(const std::int64_t* rows, std::size_t count) override;
  void flush() override;
  std::size_t held_back() const override;

  // Once nothing is appended any more: what is decided by now of the job that is under way (or null), and of
  // the releases that passed while there was work; for open_ns from each on, it could still be served in
  // time. True if the job is lost.
  bool settle(const std::int64_t* job, std::int64_t now_ns, std::int64_t open_ns);

  // Facts for the logs' header that became known.
  void update(const Json& facts);
  // Ends the logs with these facts. Throws Failure if something could not be written, now or before.
  void finish(const Json& facts);
  // Once more. Throws the same.
  void tell() const;

 private:
  struct Row {
    std::int64_t k, release, wake, done, free, status;
    bool warm() const noexcept;
    bool skipped() const noexcept;
  };
  static constexpr std::int64_t kRetryNs = 10'000'000'000;  // after a full disk
  static constexpr std::size_t kLogColumns = 5;
  static constexpr std::int64_t kMostRowsHeld = 8192;  // a frame's: however many releases have passed at once
  struct Block {
    std::int64_t number = -1, n = 0, misses = 0, max_ns = 0, max_k = 0;
  };

  void fill_gap(const std::int64_t* job);
  void take(const Row& row);
  void take_run(Row row, std::int64_t n);
  void take_more(const Row& row, std::int64_t n);
  std::int64_t plain_after(const Row& row) const;
  void write_whole(const Row& row);
  void pass_on();
  void keep_late(const Row& row, bool late);
  void put_late(const Row& row, bool late);
  void put_late(const std::vector<std::int64_t>& rows);
  std::int64_t late_bytes_used() const;
  void end_late(const std::exception& error, std::int64_t release_ns);
  bool count(const Row& row);
  void count_block(const Row& row, std::int64_t value_ns, bool missed);
  void end_block();
  void begin_segment(std::int64_t k, std::int64_t at_ns);
  void end_segment(const Json& facts);
  void drop_old_segments(std::int64_t now_ns);
  void write_bins();
  Json header_of(std::int64_t first_row, const char* part) const;
  template <typename Work>
  void attempt(Work&& work);  // what fails is told at the end
  void fail(const std::exception& error);

  const Keeping keeping_;
  Json facts_ = Json::object();
  std::int64_t next_k_ = 0, counted_k_ = 0, last_done_ns_ = INT64_MIN;

  std::unique_ptr<LogWriter> whole_;
  std::vector<std::int64_t> batch_;  // rows for whole_
  std::int64_t segment_began_ns_ = INT64_MIN, last_ns_ = INT64_MIN, retry_ns_ = INT64_MIN;
  std::int64_t whole_from_ns_ = INT64_MIN;  // what lies before it would be let go at once
  struct Segment {
    std::string path;
    std::int64_t ended_ns;
  };
  std::vector<Segment> segments_;  // oldest first; of the one that is written on, ended_ns is INT64_MAX

  std::unique_ptr<LogWriter> late_;
  std::vector<Row> before_;  // ring of the last rows
  std::int64_t late_next_k_ = 0, keep_until_k_ = -1, late_written_ = 0, late_retry_ns_ = INT64_MIN;

  Bins latency_, completion_;
  std::int64_t served_ = 0, skipped_ = 0, lost_ = 0, misses_ = 0;
  std::int64_t late_held_ = 0;  // of the late ones those in no frame yet
  std::int64_t late_alone_ = 0, late_counted_ = 0;
  Block block_;
  std::unique_ptr<LogWriter> blocks_;
  std::int64_t first_measured_ns_ = INT64_MIN;
  std::string failure_;
};

}  // namespace rtmeter
