// The releases that a loop passed over: known by arithmetic, and kept by it where they are many.
#include <algorithm>

#include "keeper.hpp"
#include "log/recorder.hpp"

namespace rtmeter {

// Releases that had passed when the thread came: it was at work until it became free, or asleep until it
// woke.
void Keeper::fill_gap(const std::int64_t* job) {
  const std::int64_t period = keeping_.period_ns;
  whole_from_ns_ = job[JobRow::release] - period - keeping_.whole_ns;
  for (std::int64_t k = next_k_, n = 0; k < job[JobRow::k]; k += n) {
    const std::int64_t release = job[JobRow::release] - (job[JobRow::k] - k) * period;
    const bool worked = last_done_ns_ >= release, warm = k < keeping_.warm_up;
    n = job[JobRow::k] - k;
    if (worked) n = std::min(n, (last_done_ns_ - release) / period + 1);
    if (warm) n = std::min(n, keeping_.warm_up - k);
    take_run({k, release, kAbsent, kAbsent, worked ? last_done_ns_ : job[JobRow::wake],
              warm ? kSkipped | kWarmUpFlag : std::int64_t{kSkipped}},
             n);
  }
}

// n releases that were skipped, the first of them `row`: where nothing begins or ends as a whole, so that the
// writer keeps up with the loop however long that stood still. The last ones may surround a late one.
void Keeper::take_run(Row row, std::int64_t n) {
  while (n > 0) {
    take(row);
    std::int64_t taken = 1;
    if (const std::int64_t more = std::min(n - 1 - kSurroundings, plain_after(row)); more > 0) {
      take_more(row, more);
      taken += more;
    }
    row.k += taken;
    row.release += taken * keeping_.period_ns;
    n -= taken;
  }
}

// How many releases after this one no log and no block of five minutes begins or ends with.
std::int64_t Keeper::plain_after(const Row& row) const {
  std::int64_t edge_ns = whole_ ? segment_began_ns_ + keeping_.whole_ns / kSegments : retry_ns_;
  if (!row.warm()) edge_ns = std::min(edge_ns, first_measured_ns_ + (block_.number + 1) * kBlockNs);
  if (!row.warm() && !late_ && late_retry_ns_ > row.release) edge_ns = std::min(edge_ns, late_retry_ns_);
  return (edge_ns - 1 - row.release) / keeping_.period_ns;
}

// The n releases after this one, which was taken: of the logs a full frame at a time, so that what a full
// disk has no room for is counted.
void Keeper::take_more(const Row& row, std::int64_t n) {
  const std::int64_t period = keeping_.period_ns, next = row.release + period;
  pass_on();
  flush();
  counted_k_ += n;
  if (!row.warm()) {
    skipped_ += n;
    misses_ += n;
    latency_.add_falling(row.k + 1, row.free - next, period, n);
    completion_.add_falling(row.k + 1, row.free - next, period, n);
    block_.n += n;
    block_.misses += n;  // the first one is its latest
  }
  for (std::int64_t release = next, taken = 0; n > 0; n -= taken) {
    const bool late = late_ && !row.warm() && late_bytes_used() < keeping_.late_bytes;
    taken = whole_ || late ? std::min(n, kMostRowsHeld) : n;
    if (!late && !row.warm()) late_counted_ += taken;
    last_ns_ = release + (taken - 1) * period;
    if (!whole_ && !late) continue;
    for (; release <= last_ns_; release += period)
      batch_.insert(batch_.end(), {release, row.wake, row.done, row.free, row.status});
    if (late) put_late(batch_);
    pass_on();
  }
}

// Rows that are late and follow the last one.
void Keeper::put_late(const std::vector<std::int64_t>& rows) {
  const std::size_t n = rows.size() / kLogColumns;
  if (late_bytes_used() >= keeping_.late_bytes / 2) late_alone_ += static_cast<std::int64_t>(n);
  try {
    late_held_ += static_cast<std::int64_t>(n);
    late_->append(rows.data(), n);
    if (late_->held_back() == 0) late_held_ = 0;
    late_next_k_ += static_cast<std::int64_t>(n);
  } catch (const std::exception& error) {
    end_late(error, rows.front());
  }
}

}  // namespace rtmeter
