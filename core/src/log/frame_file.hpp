// The file under a sample log: whole frames, or nothing of them (spec/sample-log.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rtmeter {

class FrameFile {
 public:
  static constexpr std::size_t kHeadBytes = 32;
  static constexpr std::size_t kMaxPayloadBytes = 16u << 20;

  // Creates the file, which must not exist, and writes magic and version. Throws Failure naming the path.
  explicit FrameFile(const std::string& path);
  ~FrameFile();
  FrameFile(const FrameFile&) = delete;
  FrameFile& operator=(const FrameFile&) = delete;

  // Writes a frame: its payload stands in `frame` from kHeadBytes on, its head is filled in here. When
  // that fails (disk full), cuts the file back to the last whole frame and throws Failure.
  void write(char kind, std::uint64_t first_row, std::size_t row_count, std::size_t payload_bytes,
             std::vector<std::uint8_t>& frame);
  // Throws Failure if the system reports a write error only now.
  void close();

  std::uint64_t bytes() const { return bytes_; }

 private:
  void write_bytes(const void* data, std::size_t bytes);
  [[noreturn]] void fail(int error) const;

  const std::string path_;
  int fd_;
  std::uint64_t bytes_ = 0;  // in whole frames
};

}  // namespace rtmeter
