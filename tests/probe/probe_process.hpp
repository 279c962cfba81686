// A probe started as a process of its own, and what it said.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "json/json.hpp"

namespace rtmeter::testing_help {

// A folder for a test's files, removed with the object.
struct Folder {
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string path;
};

// A config (spec/probe.md) with a period of 1 ms and 50 warm-up releases.
Json probe_config(const char* measurement, std::int64_t samples, Json::Object more);
// `options` with one entry.
Json option(const char* key, const char* value);

class ProbeProcess {
 public:
  // Starts `program --config FILE`; files go into the folder, named by `name`.
  ProbeProcess(const std::string& program, const Folder& folder, const std::string& name, Json config,
               const std::vector<std::string>& environment = {});
  ~ProbeProcess();  // kills it if it still runs
  ProbeProcess(const ProbeProcess&) = delete;
  ProbeProcess& operator=(const ProbeProcess&) = delete;

  // The next status line, or null at the end of output.
  Json next_line();
  // The next status line of that event, or null.
  Json next_event(const std::string& event);
  // Asks it to end, as a user's Ctrl-C would.
  void interrupt() const;
  // Waits for its end; the exit code, or minus the signal that ended it.
  int wait();
  // Waits until it has written that to standard error; false if it ends, or minutes pass, without.
  bool says(const std::string& text) const;
  // What it wrote to standard error.
  std::string errors() const;

 private:
  std::string errors_path_;
  std::string buffered_;
  int output_ = -1;
  pid_t pid_ = -1;
};

}  // namespace rtmeter::testing_help
