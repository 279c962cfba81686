#include "log/recorder.hpp"

#include <time.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
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

std::int64_t holds_ns(std::size_t rows, std::int64_t period_ns) {
  const auto count = static_cast<std::int64_t>(rows);
  return period_ns <= INT64_MAX / count ? count * period_ns : INT64_MAX;
}

struct Recorder::Impl {
  Impl(Ring& ring, RowSink& log, WhenFull when_full, Tap tap)
      : ring_(ring), lines_((capacity() * ring.columns * sizeof(std::int64_t) + kCacheLine - 1) / kCacheLine),
        waits_(when_full == WhenFull::wait), log_(log), tap_(std::move(tap)) {
    ring.rows = reinterpret_cast<std::int64_t*>(lines_.data());
  }

  std::size_t capacity() const { return ring_.mask + 1; }

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
    const std::uint64_t head = ring_.head.load(std::memory_order_acquire);
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    const std::uint64_t first = tail;
    while (tail != head) {
      const std::size_t at = static_cast<std::size_t>(tail) & ring_.mask;
      const std::size_t step =
          std::min({static_cast<std::size_t>(head - tail), capacity() - at, capacity() / 4 + 1});
      const std::int64_t* rows = ring_.slot(tail);
      if (tap_) attempt([&] { tap_(rows, step); });
      attempt([&] { log_.append(rows, step); });
      const std::uint64_t fill = ring_.head.load(std::memory_order_relaxed) - tail;
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

  Ring& ring_;
  std::vector<Line> lines_;  // the ring's rows

  // The writer's.
  alignas(kCacheLine) std::atomic<std::uint64_t> tail_{0};  // rows taken
  std::atomic<std::uint64_t> high_water_{0};
  Hold hold_;  // of the oldest row that is drained and not yet in a frame
  std::atomic<bool> waits_;  // apart from the ring, which is the producer's: others ask
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
    : ring_{columns, std::bit_ceil(std::max<std::size_t>(ring_rows, 2)) - 1},
      impl_(std::make_unique<Impl>(ring_, log, when_full, std::move(tap))) {}

Recorder::~Recorder() { finish(); }

void Recorder::wait_for_room() noexcept { impl_->waits_.store(true, std::memory_order_relaxed); }

std::uint64_t Recorder::settled() const noexcept {
  return impl_->waits_.load(std::memory_order_relaxed) ? ring_.head.load(std::memory_order_relaxed) : 0;
}

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

bool Recorder::make_room(std::uint64_t head) noexcept {
  Impl& r = *impl_;
  ring_.known_tail = r.tail_.load(std::memory_order_acquire);
  while (head - ring_.known_tail > ring_.mask) {
    if (!r.waits_.load(std::memory_order_relaxed) || !r.running_.load(std::memory_order_acquire))
      return false;
    r.wake();
    pause(kProducerPause);
    ring_.known_tail = r.tail_.load(std::memory_order_acquire);
  }
  return true;
}

void Recorder::finish() {
  if (!impl_->running_.exchange(false)) return;
  impl_->wake();
  impl_->thread_->join();
  impl_->finished_ = true;
}

std::uint64_t Recorder::recorded() const noexcept {
  return (impl_->finished_ ? impl_->tail_ : ring_.head).load(std::memory_order_relaxed);
}
std::uint64_t Recorder::overflow() const noexcept { return ring_.overflow.load(std::memory_order_relaxed); }
std::size_t Recorder::high_water() const noexcept {
  return static_cast<std::size_t>(impl_->high_water_.load(std::memory_order_relaxed));
}
std::size_t Recorder::ring_rows() const noexcept { return impl_->capacity(); }
int Recorder::writer_tid() const noexcept { return impl_->thread_ ? impl_->thread_->tid() : 0; }
bool Recorder::failed() const noexcept { return impl_->failed_.load(std::memory_order_acquire); }
std::string Recorder::failure() const { return impl_->failure_; }

}  // namespace rtmeter
