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
                 respond_delay_ns = 0, accept_delay_ns = 0, feedback_delay_ns = 0, match_delay_ns = 0,
                 message_delay_ns = 0, subscriber_delay_ns = 0, publisher_delay_ns = 0,
                 background_delay_ns = 0;
    Fate fate = Fate::ok;
    std::vector<std::int64_t> edges;  // in the order of edges_: delivery, in a discovery a match
  };

  // Without a script everything is exactly on time. Throws SetupError naming file, line and column.
  explicit Script(const rtm_run& run);

  const Row& row(std::int64_t k) const { return rows_[static_cast<std::size_t>(k) % rows_.size()]; }
  // The number of the edge "publisher>hearer" of a chain, a discovery or a round trip; kNone without a column
  // of its own.
  std::size_t edge(const std::string& name) const;
  bool has_edges() const { return !edges_.empty(); }
  // Throws SetupError, naming those that are there, if there is a column of an edge that is not.
  void refuse_others(const std::vector<std::string>& there) const;
  static constexpr std::size_t kNone = SIZE_MAX;
  // How long the publisher's message k is under way on it.
  std::int64_t under_way(std::int64_t k, std::size_t edge) const {
    return edge == kNone ? 0 : row(k).edges[edge];
  }
  // True if every fire delay is empty.
  bool never_fires() const { return never_fires_; }

 private:
  std::string path_;
  std::vector<Row> rows_;
  std::vector<std::string> edges_;
  bool never_fires_ = false;
};

}  // namespace rtmeter::null
