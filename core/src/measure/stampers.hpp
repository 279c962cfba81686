// Which threads stamp: an executor of several, or a listener, stamps on threads that the measurement did not
// start, and that may have ended before it does.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "system/audit.hpp"

namespace rtmeter {

class Stampers {
 public:
  // The calling thread stamps. Measured path: system calls at a thread's first time only, by which it also
  // looks at itself unless it is the process's first.
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
  int only() const noexcept { return count() == 1 ? places_[0].tid.load(std::memory_order_acquire) : 0; }
  // True if more than one did.
  bool several() const noexcept { return count() > 1; }
  std::vector<int> tids() const {
    std::vector<int> all;
    for (std::size_t i = 0; i < count(); ++i) all.push_back(places_[i].tid.load(std::memory_order_acquire));
    return all;
  }
  // As they were when they stamped first; without the process's first thread, which is always there.
  std::vector<ThreadFacts> as_they_began() const {
    std::vector<ThreadFacts> all;
    for (const Place& place : places_)
      if (place.looked.load(std::memory_order_acquire)) all.push_back(place.self.facts());
    for (ThreadFacts& t : all) t.stamps = true;
    return all;
  }

 private:
  static constexpr std::size_t kMost = 64;  // more stamp unnamed
  struct Place {
    std::atomic<int> tid{0};
    std::atomic<bool> looked{false};  // self is whole
    SelfPortrait self;
  };

  std::size_t count() const noexcept {
    std::size_t n = 0;
    while (n < kMost && places_[n].tid.load(std::memory_order_acquire) != 0) ++n;
    return n;
  }
  void add(int tid) noexcept {
    last_.store(tid, std::memory_order_relaxed);
    for (Place& place : places_) {
      int free = 0;
      if (place.tid.load(std::memory_order_acquire) == tid) return;
      if (!place.tid.compare_exchange_strong(free, tid)) continue;
      if (tid != first_) place.looked.store(place.self.take(), std::memory_order_release);
      return;
    }
  }

  const int first_ = getpid();  // asked for beforehand: no system call of ours on the measured path
  std::atomic<int> last_{0};
  Place places_[kMost];
};

}  // namespace rtmeter
