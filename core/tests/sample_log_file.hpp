// A sample log as the tests see it: read by the letter of spec/sample-log.md, without the writer's code.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "json/json.hpp"
#include "log/crc32c.hpp"
#include "log/recorder.hpp"

namespace rtmeter::testing_help {

using Row = std::vector<std::int64_t>;
inline constexpr std::int64_t A = kAbsent, kWarm = kServed | kWarmUpFlag;

struct Frame {
  char kind;
  std::uint64_t first_row;
  std::uint32_t row_count;
  std::string content;  // of the payload: JSON text, or the byte planes
};

struct SampleLog {
  std::string head;  // magic and version
  std::vector<Frame> frames;
  std::size_t whole_bytes = 0;  // up to the end of the last whole frame
  std::size_t file_bytes = 0;

  std::string kinds() const {
    std::string kinds;
    for (const Frame& frame : frames) kinds += frame.kind;
    return kinds;
  }
};

inline std::string file_content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T>
T little_endian(const std::string& bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;)
    value = static_cast<T>(value << 8 | static_cast<unsigned char>(bytes.at(at + i)));
  return value;
}

// Every whole frame up to the first one that is not.
inline SampleLog read_sample_log(const std::string& path) {
  const std::string file = file_content(path);
  SampleLog log;
  log.head = file.substr(0, 12);
  log.file_bytes = file.size();
  for (std::size_t at = log.whole_bytes = 12; at + 32 <= file.size(); log.whole_bytes = at) {
    const std::uint32_t bytes = little_endian<std::uint32_t>(file, at + 20);
    if (file.substr(at, 4) != "RBF\x01" || at + 32 + bytes > file.size()) break;
    if (crc32c_portable(file.data() + at, 28) != little_endian<std::uint32_t>(file, at + 28)) break;
    if (crc32c_portable(file.data() + at + 32, bytes) != little_endian<std::uint32_t>(file, at + 24)) break;
    EXPECT_EQ(file.substr(at + 5, 3), std::string(3, '\0'));
    Frame frame{file[at + 4], little_endian<std::uint64_t>(file, at + 8),
                little_endian<std::uint32_t>(file, at + 16), file.substr(at + 32, bytes)};
    if (frame.kind == 'R') {
      const auto content_bytes = ZSTD_getFrameContentSize(file.data() + at + 32, bytes);
      std::string planes(static_cast<std::size_t>(content_bytes), '\0');
      EXPECT_EQ(ZSTD_decompress(planes.data(), planes.size(), file.data() + at + 32, bytes), planes.size());
      frame.content = planes;
    }
    log.frames.push_back(std::move(frame));
    at += 32 + bytes;
  }
  return log;
}

inline std::vector<Row> rows_of(const Frame& frame, std::size_t columns) {
  const std::size_t count = frame.row_count;
  EXPECT_EQ(frame.content.size(), columns * 8 * count);
  std::vector<Row> rows(count, Row(columns));
  for (std::size_t column = 0; column < columns; ++column) {
    std::uint64_t value = 0;
    for (std::size_t row = 0; row < count; ++row) {
      std::uint64_t code = 0;
      for (std::size_t plane = 0; plane < 8; ++plane) {
        code |= std::uint64_t{static_cast<unsigned char>(frame.content[(column * 8 + plane) * count + row])}
                << (8 * plane);
      }
      value += (code >> 1) ^ (0 - (code & 1));
      rows[row][column] = static_cast<std::int64_t>(value);
    }
  }
  return rows;
}

// All rows, in the order of the file; their frames must follow on each other.
inline std::vector<Row> rows_of(const SampleLog& log, std::size_t columns) {
  std::vector<Row> rows;
  for (const Frame& frame : log.frames) {
    if (frame.kind != 'R') continue;
    EXPECT_EQ(frame.first_row, rows.size());
    const std::vector<Row> more = rows_of(frame, columns);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

inline Json header_of_columns(const std::vector<std::string>& names) {
  Json header = Json::object();
  Json& columns = header["columns"] = Json::array();
  for (const std::string& name : names) {
    Json column = Json::object();
    column["name"] = name;
    columns.push(std::move(column));
  }
  return header;
}

// A directory that lasts as long as the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "rtmeter-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace rtmeter::testing_help
