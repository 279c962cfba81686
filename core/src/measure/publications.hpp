// What further publishers of topic ping publish, and which of it a process that hears the topic has heard:
// counted on whatever thread calls back, one at a time; no allocation once it is made.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <string>

#include "measure/config.hpp"
#include "measure/payload.hpp"

namespace rtmeter {

// A message's sequence number says who published it: the client (0), or further publisher 2, 3, ...; the
// last number of each is its greeting.
namespace publication {
constexpr int kShift = 40;
constexpr std::uint64_t kGreeting = (std::uint64_t{1} << kShift) - 1;
constexpr std::uint64_t sequence(int publisher, std::uint64_t k) noexcept {
  return static_cast<std::uint64_t>(publisher) << kShift | k;
}
constexpr int publisher_of(std::uint64_t sequence) noexcept { return static_cast<int>(sequence >> kShift); }
constexpr std::uint64_t k_of(std::uint64_t sequence) noexcept { return sequence & kGreeting; }
inline std::string name_of(int publisher) { return "publisher" + std::to_string(publisher); }
}  // namespace publication

class Publications {
 public:
  explicit Publications(const Config& config) : payload_(config.payload_bytes) {
    for (int n = 2; config.beside && n <= config.beside->publishers; ++n) of_.emplace_back();
  }

  bool expected() const noexcept { return !of_.empty(); }

  // Whether a further publisher's message has come, which nobody answers. [measured path]
  bool take(const rtm_message& message) noexcept {
    const int number = publication::publisher_of(message.sequence);
    if (number < 2 || static_cast<std::size_t>(number) > of_.size() + 1) return false;
    Heard& one = of_[static_cast<std::size_t>(number) - 2];
    seen_.fetch_add(1, std::memory_order_relaxed);
    if (!payload_.intact(message))
      one.corrupted.fetch_add(1, std::memory_order_relaxed);
    else
      one.note(publication::k_of(message.sequence));
    return true;
  }

  // Each has been heard, whether before the run or in it.
  bool greeted() const noexcept {
    for (const Heard& one : of_)
      if (!one.greeted.load(std::memory_order_relaxed)) return false;
    return expected();
  }
  // Messages so far, of any of them.
  std::uint64_t seen() const noexcept { return seen_.load(std::memory_order_relaxed); }

  // Of each publisher how many of its messages have come once at least, how many more came of the same, and
  // how many were damaged.
  Json to_json() const {
    Json list = Json::array();
    for (std::size_t i = 0; i < of_.size(); ++i)
      list.push(Json(Json::Object{{"name", publication::name_of(static_cast<int>(i) + 2)},
                                  {"received", of_[i].received.load()},
                                  {"duplicate", of_[i].duplicate.load()},
                                  {"corrupted", of_[i].corrupted.load()}}));
    return list;
  }

 private:
  // One that comes again within so many others of the same publisher is told from a new one.
  static constexpr std::size_t kRemembered = 4096;
  struct Heard {
    std::atomic<std::uint64_t> received{0}, duplicate{0}, corrupted{0};
    std::atomic<bool> greeted{false};
    std::array<std::uint64_t, kRemembered> last{};  // k + 1 at k modulo their number; 0: none yet

    void note(std::uint64_t k) noexcept {
      greeted.store(true, std::memory_order_relaxed);
      if (k == publication::kGreeting) return;
      std::uint64_t& known = last[k % kRemembered];
      (known == k + 1 ? duplicate : received).fetch_add(1, std::memory_order_relaxed);
      known = k + 1;
    }
  };

  const Payload payload_;
  std::deque<Heard> of_;
  std::atomic<std::uint64_t> seen_{0};
};

}  // namespace rtmeter
