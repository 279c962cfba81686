// A version 1 control group of the test's own.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "system/limits.hpp"

namespace rtmeter::testing_help {

// Made below the root group, removed with the object; `problem` tells why it could not be made.
class OwnControlGroup {
 public:
  explicit OwnControlGroup(const std::string& controller) {
    const auto current = control_group(0, controller);
    if (!current || current->version != 1) {
      problem = "needs the " + controller + " controller mounted as a version 1 control group";
      return;
    }
    root_ = current->mount;
    directory_ = current->mount + "/rtmeter-test-" + std::to_string(getpid());
    if (mkdir(directory_.c_str(), 0755) != 0) {
      problem = "needs permission to make a control group in " + root_;
      directory_.clear();
    }
  }
  ~OwnControlGroup() {
    if (!directory_.empty()) rmdir(directory_.c_str());
  }
  OwnControlGroup(const OwnControlGroup&) = delete;
  OwnControlGroup& operator=(const OwnControlGroup&) = delete;

  // Writes one of the group's files, and reports whether the kernel took it.
  bool set(const std::string& file, const std::string& value) const {
    std::ofstream stream(directory_ + "/" + file);
    stream << value << std::flush;
    return stream.good();
  }
  // Moves the calling process into the group.
  bool enter() const { return set("cgroup.procs", std::to_string(getpid())); }
  // Moves it to the root group, so that this one can be removed.
  bool leave() const {
    std::ofstream stream(root_ + "/cgroup.procs");
    stream << getpid() << std::flush;
    return stream.good();
  }

  std::string problem;

 private:
  std::string root_, directory_;
};

}  // namespace rtmeter::testing_help
