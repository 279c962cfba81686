// rosmaster: found, or started and ended with the run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "../common/daemon/process.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_ros1 {

// Whether the run's processes, which start in any order, share a master at a port that follows from the
// session: those of a chain and of a discovery.
bool all_agree(const rtm_run& run);

// A master that answers, while this lives: the one of option endpoint (whoever is told it) or of
// ROS_MASTER_URI, else one of our own on a free port of the address, or of 127.0.0.1 if that is empty, unless
// all agree.
class Master {
 public:
  // Throws SetupError if none answers and none can be started.
  Master(const rtm_run& run, const std::string& address);
  // One for as long as the process lives.
  static std::shared_ptr<Master> of_process(const rtm_run& run, const std::string& address);
  // One that is ours is ended, once nobody shares it any more.
  ~Master();
  Master(const Master&) = delete;
  Master& operator=(const Master&) = delete;

  const std::string& uri() const { return uri_; }
  bool is_ours() const { return child_ > 0; }
  pid_t pid() const { return pid_; }
  // Whether it died since; not known of one on another host. Measured path.
  bool gone() const noexcept { return watch_ != nullptr && watch_->gone(); }

 private:
  bool answers(const std::string& uri);
  // On the port, or a free one where that is empty.
  void start(const std::string& address, const std::string& port);
  // Whether a master started there answers; what it says goes to the output.
  bool starts(const std::string& program, const std::string& address, const std::string& port,
              const rtmeter_daemon::File& output);
  void end_child(int signal);

  std::string uri_;
  pid_t child_ = 0, pid_ = 0;
  int users_ = -1;  // held locked by all that share a master of ours, on its program
  std::unique_ptr<rtmeter_daemon::ProcessWatch> watch_;
};

}  // namespace rtmeter_ros1
