// RouDi, iceoryx's daemon: found, or started and ended with its last user.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "../common/daemon/process.hpp"

namespace rtmeter_iceoryx {

// The largest chunk of a RouDi of ours, for a payload of 4 or 8 MiB: the latter where a run wants it.
constexpr std::uint32_t kUsualChunk = (4 << 20) + 64, kLargestChunk = (8 << 20) + 64;

// A RouDi that answers, for the lifetime of the process: the one that runs already, or one of ours. Ours is
// shared by all runs of this machine and ends when the last process that made a Roudi has ended, however.
class Roudi {
 public:
  // With chunks of that many bytes if it is ours, has any so large, and no other run keeps one with smaller.
  // Throws SetupError if none runs and none can be started.
  explicit Roudi(std::uint32_t chunk_bytes);
  Roudi(const Roudi&) = delete;
  Roudi& operator=(const Roudi&) = delete;

  pid_t pid() const { return pid_; }
  bool ran_already() const { return ran_already_; }
  // 0: it is not ours.
  std::uint32_t largest_chunk() const { return largest_chunk_; }
  // Whether it died since. Measured path.
  bool gone() const noexcept { return watch_ != nullptr && watch_->gone(); }

 private:
  bool ran_already_ = false;
  pid_t pid_ = 0;
  std::uint32_t largest_chunk_ = 0;
  std::unique_ptr<rtmeter_daemon::ProcessWatch> watch_;
};

}  // namespace rtmeter_iceoryx
