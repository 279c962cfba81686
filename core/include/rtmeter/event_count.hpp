// An event count: whoever waits for something to happen, in this process or another, sleeps on its futex.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

namespace rtmeter {

// 32-bit systems have a call for each size of time_t.
#ifdef SYS_futex_time64
inline constexpr long kFutexCall = sizeof(time_t) == 8 ? SYS_futex_time64 : SYS_futex;
#else
inline constexpr long kFutexCall = SYS_futex;
#endif

// To wait: take a ticket, look whether there is something to do, and if not wait with the ticket. To
// tell: put what there is to do, then notify. A ticket from before an event does not sleep, so no event is
// missed. No lock: a party that dies holds nobody up. Lies in zeroed memory.
// Flags: 0 between processes, FUTEX_PRIVATE_FLAG between threads.
template <int Flags>
class EventCount {
 public:
  std::uint32_t ticket() const noexcept { return events_.load(); }

  // Measured path: a system call only if somebody sleeps.
  void notify() noexcept {
    events_.fetch_add(1);
    if (sleepers_.load() != 0)
      syscall(kFutexCall, &events_, FUTEX_WAKE | Flags, INT_MAX, nullptr, nullptr, 0);
  }

  // Until the next event after the ticket, a signal, or the timeout (INT64_MAX: none); negative: failed.
  // One sleeper at a time. Measured path.
  int wait(std::uint32_t ticket, std::int64_t timeout_ns) noexcept {
    return wait_by(FUTEX_WAIT, ticket, timeout_ns);
  }
  // The same until a moment of CLOCK_MONOTONIC (INT64_MAX: none).
  int wait_until(std::uint32_t ticket, std::int64_t until_ns) noexcept {
    return wait_by(FUTEX_WAIT_BITSET, ticket, until_ns);
  }

 private:
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "needed between processes");

  int wait_by(int operation, std::uint32_t ticket, std::int64_t time_ns) noexcept {
    const timespec time{static_cast<time_t>(time_ns / 1000000000), static_cast<long>(time_ns % 1000000000)};
    sleepers_.store(1);
    const long result = syscall(kFutexCall, &events_, operation | Flags, ticket,
                                time_ns == INT64_MAX ? nullptr : &time, nullptr, FUTEX_BITSET_MATCH_ANY);
    sleepers_.store(0, std::memory_order_relaxed);
    return result == 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT ? 0 : -1;
  }

  alignas(64) std::atomic<std::uint32_t> events_;
  std::atomic<std::uint32_t> sleepers_;  // 0 or 1; one that was killed costs a call an event, no more
};
using ProcessEventCount = EventCount<0>;
using ThreadEventCount = EventCount<FUTEX_PRIVATE_FLAG>;
static_assert(sizeof(ProcessEventCount) == 64, "the same in every process");

}  // namespace rtmeter
