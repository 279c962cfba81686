// Writes a sample log (spec/sample-log.md). Not on the measured path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "json/json.hpp"
#include "log/row_sink.hpp"

namespace rtmeter {

class LogWriter final : public RowSink {
 public:
  // Creates the file (an existing one is an error) and writes magic and header twice.
  // header["columns"] gives the number of columns, header["first_row"], if there is one, the k of the first
  // row. Throws Failure (errors.hpp) naming the path.
  LogWriter(const std::string& path, const Json& header);
  ~LogWriter() override;  // does not write an end frame
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Appends rows (row-major). Writes a row frame whenever one is full. Throws Failure on a full disk,
  // after cutting the file back to the last whole frame.
  void append(const std::int64_t* rows, std::size_t count) override;
  // Writes the rows held back as a frame, if any.
  void flush() override;
  // The next row is row k, which may lie beyond the one that would follow: only in a log whose header says
  // "sparse". Flushes first.
  void go_to(std::uint64_t k);
  // Writes a 'J' frame. Flushes rows first. Thread-safe against append() and flush().
  void update(const Json& object);
  // Flushes, writes the 'E' frame and closes.
  void finish(const Json& object);

  std::uint64_t rows() const;   // k of the next row: rows appended, unless some were left out
  std::uint64_t bytes() const;  // bytes written so far
  std::size_t held_back() const override;  // rows not yet in a frame

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rtmeter
