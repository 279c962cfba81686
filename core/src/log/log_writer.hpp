// Writes a sample log (spec/sample-log.md). Not on the measured path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "json/json.hpp"

namespace rtmeter {

class LogWriter {
 public:
  // Creates the file (an existing one is an error) and writes magic and header twice.
  // header["columns"] gives the number of columns. Throws Failure (errors.hpp) naming the path.
  LogWriter(const std::string& path, const Json& header);
  ~LogWriter();  // does not write an end frame
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Appends rows (row-major). Writes a row frame whenever one is full. Throws Failure on a full disk,
  // after cutting the file back to the last whole frame.
  void append(const std::int64_t* rows, std::size_t count);
  // Writes the rows held back as a frame, if any.
  void flush();
  // Writes a 'J' frame. Flushes rows first. Thread-safe against append() and flush().
  void update(const Json& object);
  // Flushes, writes the 'E' frame and closes.
  void finish(const Json& object);

  std::uint64_t rows() const;   // rows appended
  std::uint64_t bytes() const;  // bytes written so far
  std::size_t held_back() const;  // rows not yet in a frame

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rtmeter
