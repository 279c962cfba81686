// What a message of a chain carries: for each way that leads to its stage the sample that it rests on.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "log/crc32c.hpp"
#include "log/recorder.hpp"
#include "rtmeter/adapter.h"

namespace rtmeter {

// Index and release of a sample, unchanged from its source on; kAbsent: none came that way.
struct Sample {
  std::int64_t index = kAbsent, release_ns = kAbsent;
};

// Four bytes of checksum, four unused, then the samples; the rest of the payload is a fixed pattern.
class ChainMessage {
 public:
  static constexpr std::size_t kHead = 8;
  static std::size_t bytes_for(std::size_t ways) { return kHead + ways * sizeof(Sample); }

  // bytes >= bytes_for(ways).
  ChainMessage(std::uint32_t bytes, std::size_t ways) : data_(bytes), ways_(ways) {
    for (std::uint32_t i = kHead; i < bytes; ++i) data_[i] = static_cast<std::uint8_t>(i * 131U + (i >> 8));
  }

  // Valid until the next call. Measured path.
  rtm_message message(std::uint64_t sequence, const Sample* samples) noexcept {
    std::memcpy(data_.data() + kHead, samples, ways_ * sizeof(Sample));
    const std::uint32_t sum = checksum(sequence, data_.data());
    std::memcpy(data_.data(), &sum, sizeof sum);
    return {sequence, data_.data(), static_cast<std::uint32_t>(data_.size())};
  }

  // Fills samples[0 … ways); false if the message is not whole. Measured path.
  bool read(const rtm_message& m, Sample* samples) const noexcept {
    std::uint32_t sum;
    if (m.bytes != data_.size()) return false;
    std::memcpy(&sum, m.data, sizeof sum);
    if (sum != checksum(m.sequence, m.data)) return false;
    std::memcpy(samples, m.data + kHead, ways_ * sizeof(Sample));
    return true;
  }

 private:
  std::uint32_t checksum(std::uint64_t sequence, const std::uint8_t* data) const noexcept {
    return crc32c(&sequence, sizeof sequence, crc32c(data + kHead, ways_ * sizeof(Sample)));
  }

  std::vector<std::uint8_t> data_;
  const std::size_t ways_;
};

}  // namespace rtmeter
