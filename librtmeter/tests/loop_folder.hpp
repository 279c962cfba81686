// What a loop left on the disk, as the tests see it.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "sample_log_file.hpp"

namespace rtmeter::testing_help {

// The files of a folder whose names begin so, in order.
inline std::vector<std::string> files_of(const std::string& folder, const std::string& begin) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().rfind(begin, 0) == 0) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

inline std::uintmax_t bytes_of(const std::string& folder) {
  std::uintmax_t bytes = 0;
  for (const std::string& file : files_of(folder, "")) bytes += std::filesystem::file_size(file);
  return bytes;
}

// The rows of a sample log with k before them, wherever its frames begin.
inline std::vector<Row> rows_with_k(const std::string& path, std::size_t columns) {
  std::vector<Row> rows;
  for (const Frame& frame : read_sample_log(path).frames) {
    if (frame.kind != 'R') continue;
    auto k = static_cast<std::int64_t>(frame.first_row);
    for (Row& row : rows_of(frame, columns)) {
      row.insert(row.begin(), k++);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

// The same of all logs of a kind.
inline std::vector<Row> rows_of_part(const std::string& folder, const std::string& part,
                                     std::size_t columns = 5) {
  std::vector<Row> rows;
  for (const std::string& file : files_of(folder, part + "-"))
    for (Row& row : rows_with_k(file, columns)) rows.push_back(std::move(row));
  return rows;
}

inline Json bins_of(const std::string& folder) {
  return Json::parse(file_content(folder + "/bins.json"), "bins.json");
}

}  // namespace rtmeter::testing_help
