// A queue of messages in memory that two threads, or two processes, share: one puts, one takes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rtmeter/adapter.h"

namespace rtmeter_posix {

// A view of memory that starts as zeros: two counters, each in a cache line of its own, then slots.
// Lock-free: a party that dies leaves at most a message that was never published.
class Ring {
 public:
  // Slots of a ring for messages of up to max_bytes: a power of two, 4 to 256, a MiB's worth.
  static std::uint32_t slots_for(std::size_t max_bytes) {
    constexpr std::size_t kMiB = std::size_t{1} << 20;
    std::uint32_t slots = 256;
    while (slots > 4 && slot_size(max_bytes) > kMiB / slots) slots /= 2;
    return slots;
  }
  // What a ring for messages of up to max_bytes takes.
  static std::size_t size_of(std::size_t max_bytes) {
    return sizeof(Counters) + slots_for(max_bytes) * slot_size(max_bytes);
  }

  Ring() = default;
  // memory: size_of(max_bytes) bytes, aligned to 64.
  Ring(void* memory, std::size_t max_bytes)
      : counters_(static_cast<Counters*>(memory)),
        slots_(static_cast<std::uint8_t*>(memory) + sizeof(Counters)), max_bytes_(max_bytes),
        slot_count_(slots_for(max_bytes)) {}

  // False if the ring is full or the message too long. One thread puts. Measured path.
  bool put(const rtm_message& message) noexcept {
    const std::uint32_t written = counters_->written.load(std::memory_order_relaxed);
    if (message.bytes > max_bytes_ ||
        written - counters_->taken.load(std::memory_order_acquire) >= slot_count_)
      return false;
    std::uint8_t* slot = slot_at(written);
    const Head head{message.sequence, message.bytes, 0};
    std::memcpy(slot, &head, sizeof head);
    std::memcpy(slot + sizeof head, message.data, message.bytes);
    counters_->written.store(written + 1, std::memory_order_release);
    return true;
  }

  bool empty() const noexcept {
    return counters_->written.load(std::memory_order_acquire) ==
           counters_->taken.load(std::memory_order_relaxed);
  }

  // Shows the oldest message to `take(message)` in place, then frees its slot; false if there is none.
  // One thread takes. Measured path.
  template <typename Take>
  bool take(Take&& take) noexcept {
    if (empty()) return false;
    const std::uint32_t taken = counters_->taken.load(std::memory_order_relaxed);
    const std::uint8_t* slot = slot_at(taken);
    Head head;
    std::memcpy(&head, slot, sizeof head);
    const bool whole = head.bytes <= max_bytes_;  // the other process is not believed blindly
    if (whole) take(rtm_message{head.sequence, slot + sizeof head, head.bytes});
    counters_->taken.store(taken + 1, std::memory_order_release);
    return whole;
  }

 private:
  struct Counters {
    alignas(64) std::atomic<std::uint32_t> written;  // messages ever put, modulo 2^32
    alignas(64) std::atomic<std::uint32_t> taken;    // messages ever taken
  };
  struct Head {
    std::uint64_t sequence;
    std::uint32_t bytes, unused;
  };
  static_assert(sizeof(Counters) == 128 && sizeof(Head) == 16, "the same in every process");

  static std::size_t slot_size(std::size_t max_bytes) { return (sizeof(Head) + max_bytes + 63) / 64 * 64; }
  std::uint8_t* slot_at(std::uint32_t index) const noexcept {
    return slots_ + (index % slot_count_) * slot_size(max_bytes_);
  }

  Counters* counters_ = nullptr;
  std::uint8_t* slots_ = nullptr;
  std::size_t max_bytes_ = 0;
  std::uint32_t slot_count_ = 1;
};

}  // namespace rtmeter_posix
