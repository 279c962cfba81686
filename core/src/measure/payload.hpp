// The bytes that travel: a checksum over sequence number and body, then the body.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "log/crc32c.hpp"
#include "rtmeter/adapter.h"

namespace rtmeter {

class Payload {
 public:
  // bytes >= 8. The body is a fixed pattern; only sequence number and checksum change.
  explicit Payload(std::uint32_t bytes) : data_(bytes) {
    for (std::uint32_t i = kChecksum; i < bytes; ++i)
      data_[i] = static_cast<std::uint8_t>(i * 131U + (i >> 8));
    body_crc_ = crc32c(data_.data() + kChecksum, bytes - kChecksum);
  }

  // Valid until the next call. Measured path: extends a checksum by eight bytes.
  rtm_message message(std::uint64_t sequence) noexcept {
    const std::uint32_t sum = crc32c(&sequence, sizeof sequence, body_crc_);
    std::memcpy(data_.data(), &sum, sizeof sum);
    return {sequence, data_.data(), static_cast<std::uint32_t>(data_.size())};
  }

  // True if length and checksum are right.
  bool intact(const rtm_message& m) const noexcept {
    if (m.bytes != data_.size()) return false;
    std::uint32_t sum;
    std::memcpy(&sum, m.data, sizeof sum);
    const std::uint32_t body = crc32c(m.data + kChecksum, m.bytes - kChecksum);
    return sum == crc32c(&m.sequence, sizeof m.sequence, body);
  }

 private:
  static constexpr std::uint32_t kChecksum = 4;
  std::vector<std::uint8_t> data_;
  std::uint32_t body_crc_ = 0;
};

}  // namespace rtmeter
