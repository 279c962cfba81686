// Which of a round trip's pings a further subscriber has heard: counted on whatever thread calls back, one at
// a time; no allocation once it is made.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/config.hpp"
#include "measure/payload.hpp"

namespace rtmeter {

class Receipts {
 public:
  // number: which subscriber it is, from 2 on; the server is the first.
  Receipts(const Config& config, int number)
      : name_("subscriber" + std::to_string(number)), payload_(config.payload_bytes),
        warm_up_(config.warm_up), total_(config.total()), heard_(static_cast<std::size_t>(total_)) {}

  const std::string& name() const { return name_; }

  // A message of topic ping has come. [measured path]
  void take(const rtm_message& message) noexcept {
    const auto k = static_cast<std::int64_t>(message.sequence);
    if (!payload_.intact(message) || (k >= total_ || k < 0) != (message.sequence == RTM_SEQUENCE_HELLO)) {
      if (k < 0 || k >= warm_up_) corrupted_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    greeted_.store(true, std::memory_order_relaxed);
    if (message.sequence == RTM_SEQUENCE_HELLO) return;
    const auto at = static_cast<std::size_t>(k);
    const bool again = heard_[at];
    heard_[at] = true;
    if (k == total_ - 1) last_.store(true, std::memory_order_relaxed);
    if (k >= warm_up_) (again ? duplicate_ : received_).fetch_add(1, std::memory_order_relaxed);
  }

  // It has heard the client, whether before the run or in it.
  bool greeted() const noexcept { return greeted_.load(std::memory_order_relaxed); }
  // It has heard the last that is planned.
  bool has_last() const noexcept { return last_.load(std::memory_order_relaxed); }

  // Over measured releases: how many have come once at least, how many more came of the same, and how many
  // were damaged.
  Json to_json() const {
    return Json(Json::Object{{"name", name_},
                             {"received", received_.load()},
                             {"duplicate", duplicate_.load()},
                             {"corrupted", corrupted_.load()}});
  }

 private:
  const std::string name_;
  const Payload payload_;
  const std::int64_t warm_up_, total_;
  std::vector<bool> heard_;
  std::atomic<std::uint64_t> received_{0}, duplicate_{0}, corrupted_{0};
  std::atomic<bool> greeted_{false}, last_{false};
};

}  // namespace rtmeter
