// The probe's status lines (spec/probe.md): standard output, kept from the middleware's chatter.
#pragma once

#include <mutex>
#include <string>

#include "errors.hpp"
#include "json/json.hpp"

namespace rtmeter {

class StatusOut {
 public:
  // Moves standard output aside; whatever else writes to it then reaches standard error.
  StatusOut();
  ~StatusOut();
  StatusOut(const StatusOut&) = delete;
  StatusOut& operator=(const StatusOut&) = delete;

  // One line. Thread-safe; a reader that went away is not an error, one that does not read is waited for.
  void write(const Json& object);
  // The same of a line that a later one makes up for: left out where nobody reads, so that it never waits.
  void write_if_read(const Json& object);
  void error(const Failure& failure);

 private:
  bool is_read() const noexcept;
  void write_line(const std::string& line) const;

  std::mutex mutex_;
  int fd_;
};

Json to_json(const Failure& failure);

}  // namespace rtmeter
