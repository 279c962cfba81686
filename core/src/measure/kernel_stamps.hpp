// What the kernel said last of when it had a message, until it is taken. Both on the measured path: of what
// is sent by the thread that sends, of what has come by the thread that receives.
#pragma once

#include <cstdint>
#include <utility>

#include "log/cache_line.hpp"
#include "measure/measurement.hpp"

namespace rtmeter {

class KernelStamps {
 public:
  // As the contract's rtm_on_stamp.
  static void on_stamp(void* user, rtm_end end, std::int64_t realtime_ns) {
    static_cast<KernelStamps*>(user)->of(end) = realtime_ns;
  }
  // CLOCK_REALTIME, or kAbsent.
  std::int64_t take(rtm_end end) noexcept { return std::exchange(of(end), kAbsent); }

 private:
  std::int64_t& of(rtm_end end) noexcept { return end == RTM_PUBLISHER ? sent_ns_ : received_ns_; }

  alignas(kCacheLine) std::int64_t sent_ns_ = kAbsent;
  alignas(kCacheLine) std::int64_t received_ns_ = kAbsent;
};

}  // namespace rtmeter
