#include "traps.hpp"

namespace rtmeter::traps {
namespace {

std::atomic<bool> window_open{false};
thread_local bool watched = false;
thread_local Side side = Side::core;

}  // namespace

Counts& counts() noexcept {
  static Counts all;
  return all;
}

void watch_thread() noexcept {
  if (watched) return;
  watched = true;
  ++counts().threads;
}

void forget_calls() noexcept {
  for (auto& count : counts().allocations) count.store(0);
  for (auto& side_counts : counts().calls)
    for (auto& count : side_counts) count.store(0);
}

bool is_watched() noexcept { return watched; }
void open_window() noexcept { window_open.store(true); }
void close_window() noexcept { window_open.store(false); }
bool window_is_open() noexcept { return window_open.load(); }
bool watching() noexcept { return watched && window_open.load(); }

Crossing::Crossing(Side to) noexcept { side = to; }
Crossing::~Crossing() { side = side == Side::core ? Side::adapter : Side::core; }
std::size_t side_now() noexcept { return static_cast<std::size_t>(side); }

}  // namespace rtmeter::traps
