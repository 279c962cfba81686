// The loop that all parts of this adapter run: block until something is ready, dispatch it, again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "rtmeter/adapter.hpp"

namespace rtmeter_posix {

class Loop {
 public:
  virtual ~Loop() = default;

  // As in the contract; a negative timeout is none. Measured path.
  int spin(std::int64_t timeout_ns) noexcept { return run(timeout_ns, false); }
  int wait(std::int64_t timeout_ns) noexcept { return run(timeout_ns, true); }
  int spin_some() noexcept { return dispatch(rtmeter::kBurst) < 0 ? -1 : 0; }
  // One call ends one spin() or wait(): the one under way, else the next.
  void interrupt() noexcept;

 protected:
  // Blocks for the timeout at most, and calls back at most once. The number of callbacks, or negative:
  // failed.
  virtual int next(std::int64_t timeout_ns) noexcept;
  // Returns when something may be ready, wake() was called, a signal came, or timeout_ns has passed
  // (kNever: no timeout). Negative: failed.
  virtual int block(std::int64_t /*timeout_ns*/) noexcept { return -1; }
  // Calls back for what is ready, at most so often, without blocking. The number of callbacks, or
  // negative: failed. Callbacks may call interrupt().
  virtual int dispatch(int at_most) noexcept = 0;
  // Ends a block() under way in another thread, or the next one.
  virtual void wake() noexcept {}

  bool interrupted() const noexcept { return interrupted_.load(std::memory_order_relaxed); }

 private:
  int run(std::int64_t timeout_ns, bool once) noexcept;
  int block_unless_interrupted(std::int64_t timeout_ns) noexcept;

  std::atomic<bool> interrupted_{false};
  std::atomic<bool> blocked_{false};
};

}  // namespace rtmeter_posix
