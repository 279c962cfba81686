// A probe started as a process of its own, and what it said.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "json.hpp"

namespace rtmeter::testing_help {

class ProbeProcess {
 public:
  // Starts `program --config FILE`; files go into `folder`, named by `name`.
  ProbeProcess(const std::string& program, const std::string& folder, const std::string& name, Json config,
               const std::vector<std::string>& environment = {});
  ~ProbeProcess();  // kills it if it still runs
  ProbeProcess(const ProbeProcess&) = delete;
  ProbeProcess& operator=(const ProbeProcess&) = delete;

  // The next status line, or null at the end of output.
  Json next_line();
  // Asks it to end, as a user's Ctrl-C would.
  void interrupt() const;
  // Waits for its end; the exit code, or minus the signal that ended it.
  int wait();
  // The last line of its standard error, after wait().
  std::string last_error_line() const;

 private:
  std::string errors_path_;
  std::string buffered_;
  int output_ = -1;
  pid_t pid_ = -1;
};

}  // namespace rtmeter::testing_help
