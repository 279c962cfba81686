// What eCAL's threads have heard, until the measured thread takes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rtmeter_ecal {

// The newest messages of each publisher that a subscriber hears, so many of each. Whoever uses it holds a
// lock.
template <typename Subscriber>
class Kept {
 public:
  struct Message {
    const Subscriber* subscriber;
    std::uint64_t publisher;
    std::vector<std::uint8_t> bytes;
  };
  using Messages = std::vector<Message>;

  // 0: all of them.
  explicit Kept(std::size_t depth = 0) : depth_(depth) {}

  bool empty() const { return messages_.empty(); }

  // In the place of the oldest of its, where there is no room for one more. Measured path.
  void add(const Subscriber& subscriber, std::uint64_t publisher, std::vector<std::uint8_t> bytes) {
    const auto is_its = [&](const Message& one) {
      return one.subscriber == &subscriber && one.publisher == publisher;
    };
    const auto begin = messages_.begin(), end = messages_.end();
    if (depth_ > 0 && static_cast<std::size_t>(std::count_if(begin, end, is_its)) >= depth_)
      messages_.erase(std::find_if(begin, end, is_its));
    messages_.push_back({&subscriber, publisher, std::move(bytes)});
  }
  // All, in the order in which they came; `taken` is empty before. Measured path.
  void take(Messages& taken) { taken.swap(messages_); }

 private:
  std::size_t depth_;
  Messages messages_;
};

}  // namespace rtmeter_ecal
