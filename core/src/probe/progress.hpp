// What the writer thread has seen of the rows, for the live view. Off the measured path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "measure/measurement.hpp"

namespace rtmeter {

class Progress {
 public:
  Progress(Judged judged, std::size_t columns, std::int64_t total)
      : judged_(judged), columns_(columns), total_(total) {}

  // Writer thread: looks at a batch of rows.
  void see(const std::int64_t* rows, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i, rows += columns_) {
      const std::int64_t code = rows[columns_ - 1], outcome = code & 15;
      seen_.fetch_add(1, std::memory_order_relaxed);
      if (outcome == kSkipped) unsent_.fetch_add(1, std::memory_order_relaxed);
      if ((code & kWarmUpFlag) != 0) {
        warm_up_.fetch_add(1, std::memory_order_relaxed);
        continue;
      }
      if (outcome == kLost) lost_.fetch_add(1, std::memory_order_relaxed);
      if (outcome == kSkipped) skipped_.fetch_add(1, std::memory_order_relaxed);
      if (outcome != kServed) continue;
      const std::int64_t value = rows[judged_.later] - rows[judged_.earlier] - judged_.minus_ns;
      if (value > max_ns_.load(std::memory_order_relaxed)) max_ns_.store(value, std::memory_order_relaxed);
    }
  }

  // Rows skipped, in warm-up too: nothing was sent for them.
  std::uint64_t unsent() const noexcept { return unsent_.load(std::memory_order_relaxed); }
  std::uint64_t skipped() const noexcept { return skipped_.load(std::memory_order_relaxed); }
  std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
  // Rows without those of the warm-up.
  std::uint64_t measured() const noexcept { return seen() - warm_up_.load(std::memory_order_relaxed); }
  // Rows of any kind.
  std::uint64_t seen() const noexcept { return seen_.load(std::memory_order_relaxed); }

  Json to_json() const {
    const std::int64_t max_ns = max_ns_.load(std::memory_order_relaxed);
    return Json(Json::Object{{"event", "progress"},
                             {"released", seen_.load(std::memory_order_relaxed)},
                             {"of", total_},
                             {"warm_up", warm_up_.load(std::memory_order_relaxed)},
                             {"max_ns", max_ns == INT64_MIN ? Json() : Json(max_ns)},
                             {"lost", lost_.load(std::memory_order_relaxed)},
                             {"skipped", skipped_.load(std::memory_order_relaxed)}});
  }

 private:
  Judged judged_;
  std::size_t columns_;
  std::int64_t total_;
  std::atomic<std::uint64_t> seen_{0}, warm_up_{0}, unsent_{0}, lost_{0}, skipped_{0};
  std::atomic<std::int64_t> max_ns_{INT64_MIN};
};

}  // namespace rtmeter
