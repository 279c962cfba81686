// RouDi, iceoryx's daemon: found, or started and ended with its last user.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>

#include "../common/daemon/process.hpp"

namespace rtmeter_iceoryx {

// A RouDi that answers, for the lifetime of the process: the one that runs already, or one of ours. Ours is
// shared by all runs of this machine and ends when the last process that made a Roudi has ended, however.
class Roudi {
 public:
  // Throws SetupError if none runs and none can be started.
  Roudi();
  Roudi(const Roudi&) = delete;
  Roudi& operator=(const Roudi&) = delete;

  pid_t pid() const { return pid_; }
  bool ran_already() const { return ran_already_; }
  // Whether it died since. Measured path.
  bool gone() const noexcept { return watch_ != nullptr && watch_->gone(); }

 private:
  bool ran_already_ = false;
  pid_t pid_ = 0;
  std::unique_ptr<rtmeter_daemon::ProcessWatch> watch_;
};

}  // namespace rtmeter_iceoryx
