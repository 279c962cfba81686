// Releases sent and not yet settled, shared by the thread that sends and the one that receives; rows
// leave in the order of k. A settled slot remembers its release until the slot is used again, which is
// how late and duplicate replies are told apart.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "log/cache_line.hpp"

namespace rtmeter {

template <std::size_t Columns>
class Pending {
 public:
  enum class State : std::uint8_t { empty, outstanding, answering, answered, lost, late, skipped };

  // A cache line of its own, or two: sender and receiver work on neighbours at the same time.
  struct alignas(kCacheLine) Slot {
    std::atomic<std::int64_t> k{-1};
    std::atomic<State> state{State::empty};
    std::atomic<std::int64_t> row[Columns] = {};  // the last column, status, is written on leaving

    std::int64_t at(std::size_t column) const noexcept { return row[column].load(std::memory_order_relaxed); }
    void set(std::size_t column, std::int64_t value) noexcept {
      row[column].store(value, std::memory_order_relaxed);
    }
  };

  // Room for `outstanding` releases and a memory of at least 2^15.
  explicit Pending(std::size_t outstanding) {
    std::size_t size = std::size_t{1} << 15;
    while (size < outstanding) size *= 2;
    allocate(size);
  }

  // Doubles the room. Allocates, so never on a real clock's measured path; no receiver may be at work.
  void grow() {
    const std::unique_ptr<Slot[]> before = std::move(slots_);
    const std::size_t size = mask_ + 1;
    allocate(2 * size);
    for (std::size_t i = 0; i < size; ++i) {
      const std::int64_t k = before[i].k.load();
      if (k < 0) continue;
      Slot& s = slot(k);
      s.k.store(k);
      s.state.store(before[i].state.load());
      for (std::size_t c = 0; c < Columns; ++c) s.set(c, before[i].at(c));
    }
  }

  Slot& slot(std::int64_t k) noexcept { return slots_[static_cast<std::size_t>(k) & mask_]; }
  // The slot if it still belongs to k.
  Slot* find(std::int64_t k) noexcept {
    Slot& s = slot(k);
    return k >= 0 && s.k.load(std::memory_order_acquire) == k ? &s : nullptr;
  }

  // Sender: true if every slot holds an unsettled release.
  bool full() const noexcept { return next_ - oldest_ > static_cast<std::int64_t>(mask_); }
  std::int64_t oldest() const noexcept { return oldest_; }
  std::int64_t next() const noexcept { return next_; }
  bool none_outstanding() const noexcept { return oldest_ == next_; }

  // Sender: takes the slot for release next() with every column absent; fill it, then publish().
  Slot& take() noexcept {
    Slot& s = slot(next_);
    s.k.store(-1, std::memory_order_relaxed);
    for (std::size_t c = 0; c < Columns; ++c) s.set(c, INT64_MIN);
    return s;
  }
  void publish(Slot& s, State state) noexcept {
    s.state.store(state, std::memory_order_relaxed);
    s.k.store(next_++, std::memory_order_release);
  }

  // Receiver: claims the release for its answer; false if it is settled or claimed. Fill the row, then
  // settle() it as answered or late.
  static bool claim(Slot& s) noexcept {
    State expected = State::outstanding;
    return s.state.compare_exchange_strong(expected, State::answering, std::memory_order_acq_rel);
  }
  static void settle(Slot& s, State state) noexcept { s.state.store(state, std::memory_order_release); }
  // Sender: gives the release up; false if its answer has been claimed.
  static bool lose(Slot& s) noexcept {
    State expected = State::outstanding;
    return s.state.compare_exchange_strong(expected, State::lost, std::memory_order_acq_rel);
  }

  static bool unsettled(const Slot& s) noexcept {
    const State state = s.state.load(std::memory_order_acquire);
    return state == State::outstanding || state == State::answering;
  }
  // Sender: hands rows to emit(k, slot, state), oldest first, until one is unsettled (unless `all`).
  template <typename Emit>
  void emit(bool all, Emit&& emit) noexcept {
    for (; oldest_ < next_; ++oldest_) {
      Slot& s = slot(oldest_);
      if (!all && unsettled(s)) return;
      emit(oldest_, s, s.state.load(std::memory_order_acquire));
    }
  }

 private:
  void allocate(std::size_t size) {
    slots_ = std::make_unique<Slot[]>(size);
    mask_ = size - 1;
  }

  alignas(kCacheLine) std::unique_ptr<Slot[]> slots_;
  std::size_t mask_ = 0;
  alignas(kCacheLine) std::int64_t oldest_ = 0, next_ = 0;  // sender's own
};

}  // namespace rtmeter
