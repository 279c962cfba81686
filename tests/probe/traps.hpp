// Catches what the measured path must not do: each allocation, release of memory and system call of a
// watched thread, while the measured window is open, is counted by who made it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rtmeter::traps {

// Whose code runs: rtmeter's core, or the adapter with its middleware.
enum class Side : std::uint8_t { core, adapter };

inline constexpr std::size_t kSides = 2, kMostCalls = 1024;

struct Counts {
  std::atomic<std::uint64_t> allocations[kSides] = {};          // malloc and its kin, free too
  std::atomic<std::uint64_t> calls[kSides][kMostCalls] = {};    // by system call number
  std::atomic<int> threads{0};                                  // watched
};
Counts& counts() noexcept;

// From now on every system call of the calling thread passes the trap, for the rest of its life. False
// if the kernel has no seccomp filters. Before the window: costs system calls.
bool set_trap() noexcept;

// Forgets allocations and calls counted so far; nobody may be watched meanwhile.
void forget_calls() noexcept;

// Counts what the calling thread does while the window is open; needs set_trap().
void watch_thread() noexcept;
bool is_watched() noexcept;
void open_window() noexcept;
void close_window() noexcept;
bool window_is_open() noexcept;
// True if what the calling thread does now counts.
bool watching() noexcept;

// The calling thread crosses the border to a side, and back to the other one at the end.
class Crossing {
 public:
  explicit Crossing(Side to) noexcept;
  ~Crossing();
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;
};
std::size_t side_now() noexcept;

}  // namespace rtmeter::traps
