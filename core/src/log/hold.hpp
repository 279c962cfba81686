// How long the recorder holds rows back for a fuller frame.
#pragma once

#include <cstdint>
#include <optional>

namespace rtmeter {

class Hold {
 public:
  static constexpr std::int64_t kLongestNs = 400'000'000;

  // Rows are held from now on, if none were.
  void begin(std::int64_t now_ns) noexcept {
    if (!since_ns_) since_ns_ = now_ns;
  }
  void end() noexcept { since_ns_.reset(); }
  // The oldest row has been held as long as it may be.
  bool due(std::int64_t now_ns) const noexcept { return since_ns_ && now_ns - *since_ns_ >= kLongestNs; }

 private:
  std::optional<std::int64_t> since_ns_;
};

}  // namespace rtmeter
