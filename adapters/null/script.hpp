// The null adapter's script: a CSV file whose row k says what happens to release k.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rtmeter/adapter.h"

namespace rtmeter::null {

inline constexpr std::int64_t kNever = INT64_MAX;  // an empty delay

enum class Fate : std::uint8_t { ok, duplicate, corrupt };

class Script {
 public:
  struct Row {
    std::int64_t wake_delay_ns = 0, fire_delay_ns = 0, reply_delay_ns = 0, request_delay_ns = 0,
                 respond_delay_ns = 0;
    Fate fate = Fate::ok;
  };

  // Without a script everything is exactly on time. Throws SetupError naming file, line and column.
  explicit Script(const rtm_run& run);

  const Row& row(std::int64_t k) const { return rows_[static_cast<std::size_t>(k) % rows_.size()]; }
  // True if every fire delay is empty.
  bool never_fires() const { return never_fires_; }

 private:
  std::vector<Row> rows_;
  bool never_fires_ = false;
};

}  // namespace rtmeter::null
