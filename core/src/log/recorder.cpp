#include "log/recorder.hpp"

#include <time.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>

#include "log/cache_line.hpp"
#include "log/hold.hpp"
#include "system/service_thread.hpp"

namespace rtmeter {
namespace {

using Nanoseconds = std::int64_t;
constexpr Nanoseconds kMillisecond = 1'000'000;
// A row is written at the latest 0.5 s after it was recorded: one poll until it is drained, the hold until
// the poll that finds it due, one poll more when that one comes just too early.
constexpr Nanoseconds kPoll = 50 * kMillisecond;
static_assert(Hold::kLongestNs + 2 * kPoll <= 500 * kMillisecond);
constexpr Nanoseconds kProducerPause = 50'000;  // WhenFull::wait: between two looks at a full ring
constexpr Nanoseconds kStall = 2'000 * kMillisecond;
constexpr std::size_t kFewestRows = std::size_t{1} << 15;
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

// Of the ring: its rows begin where a cache line does.
struct alignas(kCacheLine) Line {
  std::int64_t values[kCacheLine / sizeof(std::int64_t)] = {};
};

void pause(Nanoseconds ns) {
  const timespec t{0, static_cast<long>(ns)};
  nanosleep(&t, nullptr);
}

Nanoseconds monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<Nanoseconds>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

std::size_t ring_rows_for(std::int64_t period_ns, std::size_t columns) {
  const std::size_t most = std::bit_floor(kMostBytes / (columns * sizeof(std::int64_t)));
  const auto wanted = static_cast<std::size_t>(kStall / period_ns + 1);
  return std::bit_ceil(std::clamp(wanted, kFewestRows, most));
}

struct Recorder::Impl {
  Impl(RowSink& log, std::size_t columns, std::size_t ring_rows, WhenFull when_full, Tap tap)
      : columns_(columns), mask_(std::bit_ceil(std::max<std::size_t>(ring_rows, 2)) - 1),
        ring_((capacity() * columns * sizeof(std::int64_t) + kCacheLine - 1) / kCacheLine),
        when_full_(when_full), log_(log), tap_(std::move(tap)) {}

  std::size_t capacity() const { return mask_ + 1; }
  std::int64_t* slot(std::uint64_t row) {
    return reinterpret_cast<std::int64_t*>(ring_.data()) + (static_cast<std::size_t>(row) & mask_) * columns_;
  }

  // Measured path.
  void record(const std::int64_t* row) noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (head - known_tail_ > mask_ && !make_room(head)) {
      overflow_.store(overflow_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    std::memcpy(slot(head), row, columns_ * sizeof *row);
    head_.store(head + 1, std::memory_order_release);
    // The next row, which comes after a sleep: its lines are fetched meanwhile.
    const std::int64_t* next = slot(head + 1);
    __builtin_prefetch(next, 1);
    __builtin_prefetch(next + columns_ - 1, 1);
  }

  // Measured path, when the ring seemed full: true once there is room; false if the row is lost.
  [[gnu::noinline]] bool make_room(std::uint64_t head) noexcept {
    known_tail_ = tail_.load(std::memory_order_acquire);
    while (head - known_tail_ == capacity()) {
      if (when_full_ == WhenFull::count || !running_.load(std::memory_order_acquire)) return false;
      wake();
      pause(kProducerPause);
      known_tail_ = tail_.load(std::memory_order_acquire);
    }
    return true;
  }

  void run() {
    while (running_.load(std::memory_order_acquire)) {
      const std::size_t drained = drain();
      flush_when_due();
      if (drained < capacity() / 8) sleep();
    }
    while (drain() > 0) {
    }
    attempt([&] { log_.flush(); });
  }

  // Ends the writer's sleep. Not on the measured path, unless no time passes there.
  void wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    wakes_.notify_one();
  }

  void sleep() {
    std::unique_lock lock(mutex_);
    wakes_.wait_for(lock, std::chrono::nanoseconds(kPoll), [&] { return woken_; });
    woken_ = false;
  }

  // Takes what is in the ring, in at most two pieces (it wraps around) and a few steps, so that a
  // waiting producer goes on early. Returns the number of rows.
  std::size_t drain() {
    const std::uint64_t head = head_.load(std::memory_order_acquire);
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    const std::uint64_t first = tail;
    while (tail != head) {
      const std::size_t at = static_cast<std::size_t>(tail) & mask_;
      const std::size_t step =
          std::min({static_cast<std::size_t>(head - tail), capacity() - at, capacity() / 4 + 1});
      const std::int64_t* rows = slot(tail);
      if (tap_) attempt([&] { tap_(rows, step); });
      attempt([&] { log_.append(rows, step); });
      const std::uint64_t fill = head_.load(std::memory_order_relaxed) - tail;
      high_water_.store(std::max(high_water_.load(std::memory_order_relaxed), fill),
                        std::memory_order_relaxed);
      tail += step;
      tail_.store(tail, std::memory_order_release);
    }
    if (tail != first) hold_.begin(monotonic_ns());
    return static_cast<std::size_t>(tail - first);
  }

  void flush_when_due() {
    if (log_.held_back() == 0) hold_.end();
    if (!hold_.due(monotonic_ns())) return;
    attempt([&] { log_.flush(); });
    hold_.end();
  }

  // After a failure the ring is drained on, so that the producer never hangs, but nothing is written.
  template <typename Step>
  void attempt(Step&& step) {
    try {
      step();
    } catch (const std::exception& e) {
      if (failed_.load(std::memory_order_relaxed)) return;
      failure_ = e.what();
      failed_.store(true, std::memory_order_release);
    }
  }

  // What a record touches besides the ring, in one cache line: the first three do not change.
  alignas(kCacheLine) const std::size_t columns_;
  const std::size_t mask_;
  std::vector<Line> ring_;
  std::atomic<std::uint64_t> head_{0};  // rows handed over
  std::uint64_t known_tail_ = 0;        // tail_ when the producer last looked
  std::atomic<std::uint64_t> overflow_{0};

  // The writer's.
  alignas(kCacheLine) std::atomic<std::uint64_t> tail_{0};  // rows taken
  std::atomic<std::uint64_t> high_water_{0};
  Hold hold_;  // of the oldest row that is drained and not yet in a frame
  const WhenFull when_full_;
  RowSink& log_;
  const Tap tap_;
  std::string failure_;
  std::atomic<bool> failed_{false};

  std::atomic<bool> running_{false};
  bool finished_ = false;  // what is handed over from then on is in no log
  std::mutex mutex_;
  std::condition_variable wakes_;
  bool woken_ = false;
  std::optional<ServiceThread> thread_;
};

Recorder::Recorder(RowSink& log, std::size_t columns, std::size_t ring_rows, WhenFull when_full, Tap tap)
    : impl_(std::make_unique<Impl>(log, columns, ring_rows, when_full, std::move(tap))) {}

Recorder::~Recorder() { finish(); }

void Recorder::start(const std::vector<int>& avoid_cpus) {
  Impl& r = *impl_;
  r.running_.store(true);
  try {
    r.thread_.emplace("rtm-writer", avoid_cpus, [&r] { r.run(); });
  } catch (...) {
    r.running_.store(false);
    throw;
  }
}

void Recorder::record(const std::int64_t* row) noexcept { impl_->record(row); }

void Recorder::finish() {
  if (!impl_->running_.exchange(false)) return;
  impl_->wake();
  impl_->thread_.reset();
  impl_->finished_ = true;
}

std::uint64_t Recorder::recorded() const noexcept {
  return (impl_->finished_ ? impl_->tail_ : impl_->head_).load(std::memory_order_relaxed);
}
std::uint64_t Recorder::overflow() const noexcept { return impl_->overflow_.load(std::memory_order_relaxed); }
std::size_t Recorder::high_water() const noexcept {
  return static_cast<std::size_t>(impl_->high_water_.load(std::memory_order_relaxed));
}
std::size_t Recorder::ring_rows() const noexcept { return impl_->capacity(); }
int Recorder::writer_tid() const noexcept { return impl_->thread_ ? impl_->thread_->tid() : 0; }
bool Recorder::failed() const noexcept { return impl_->failed_.load(std::memory_order_acquire); }
std::string Recorder::failure() const { return impl_->failure_; }

}  // namespace rtmeter
