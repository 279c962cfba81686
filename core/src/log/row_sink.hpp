// Where a recorder's rows go: a sample log, or what keeps several.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rtmeter {

// Called by the writer thread alone.
class RowSink {
 public:
  virtual ~RowSink() = default;
  // Takes rows, row-major. Throws Failure on a full disk.
  virtual void append(const std::int64_t* rows, std::size_t count) = 0;
  // Writes the rows held back, if any.
  virtual void flush() = 0;
  virtual std::size_t held_back() const = 0;  // rows
};

}  // namespace rtmeter
