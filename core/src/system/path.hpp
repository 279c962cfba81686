// Which way the messages went: told by what the process sent through sockets, and what memory it shares.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "json/json.hpp"
#include "system/sends.hpp"

namespace rtmeter {

// What one end published from begin() on.
struct Published {
  std::uint64_t messages = 0, payload_bytes = 0;  // payload_bytes: of one message
  bool to_itself = false;                         // the other end is in this process
};

class Path {
 public:
  void begin() { before_ = sends_so_far(); }
  // {"carried_by", "messages", "payload_bytes", "sockets": {…}, "shared_memory": […]}; null if nothing was
  // published.
  Json to_json(const Published& published) const;

 private:
  SendsByWire before_{};
};

// What an adapter says of itself where both ends are in this process: its `transport` is what was asked for,
// which a middleware need not use there. That becomes `transport_asked`, and `transport` what carried the
// messages, once the path (as above) is known.
Json within_process(const Json& adapter, const Json& path);

// The kind of socket that carried at least half of the messages and of their bytes; without one "process"
// where both ends are in one, "shared_memory" where the process shares any, else "unknown".
std::string carried_by(const Published& published, const SendsByWire& sent, bool shares_memory);

// Files that the process has mapped to share, [{"name", "bytes"}, …] by name. maps: as /proc/self/maps.
Json shared_files(std::istream& maps);

}  // namespace rtmeter
