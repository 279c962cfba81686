// Which threads stamp: an executor of several, or a listener, stamps on threads that the measurement did not
// start.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <vector>

namespace rtmeter {

class Stampers {
 public:
  // The calling thread stamps. Measured path: a system call at a thread's first time only.
  void note() noexcept {
    const int tid = own_tid();
    if (last_.load(std::memory_order_relaxed) != tid) add(tid);
  }
  // The calling thread's, asked for once: beforehand by a thread that will stamp.
  static int own_tid() noexcept {
    thread_local int tid = 0;
    if (tid == 0) tid = gettid();
    return tid;
  }

  // The one that stamps; 0 if nobody has, or several did.
  int only() const noexcept { return count() == 1 ? tids_[0].load(std::memory_order_acquire) : 0; }
  // True if more than one did.
  bool several() const noexcept { return count() > 1; }
  std::vector<int> tids() const {
    std::vector<int> all;
    for (std::size_t i = 0; i < count(); ++i) all.push_back(tids_[i].load(std::memory_order_acquire));
    return all;
  }

 private:
  static constexpr std::size_t kMost = 64;  // more stamp unnamed

  std::size_t count() const noexcept {
    std::size_t n = 0;
    while (n < kMost && tids_[n].load(std::memory_order_acquire) != 0) ++n;
    return n;
  }
  void add(int tid) noexcept {
    last_.store(tid, std::memory_order_relaxed);
    for (std::atomic<int>& place : tids_) {
      int free = 0;
      if (place.load(std::memory_order_acquire) == tid || place.compare_exchange_strong(free, tid) ||
          free == tid)
        return;
    }
  }

  std::atomic<int> last_{0};
  std::atomic<int> tids_[kMost] = {};
};

}  // namespace rtmeter
