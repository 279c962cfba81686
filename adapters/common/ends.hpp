// How adapters of DDS and ROS 2 describe their endpoints: quality of service in effect, and whom they found.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rtmeter/adapter.hpp"

namespace rtmeter_common {

// A writer or reader, in words.
struct EndFacts {
  std::string name;                             // "writer of ping"
  std::map<std::string, std::string> policies;  // read back from the entity
  std::size_t matched = 0;                      // readers or writers that it exchanges data with
  std::string incompatible;                     // the policy that kept another from matching
};

// scope: where others were looked for.
inline void describe_ends(rtmeter::Sink& sink, const std::vector<EndFacts>& ends, int others,
                          const std::string& scope, const std::string& kind = "participants") {
  if (ends.empty()) return;
  std::map<std::string, std::map<std::string, std::string>> policies;  // policy, value, ends that have it
  for (const EndFacts& end : ends)
    for (const auto& policy : end.policies) {
      std::string& names = policies[policy.first][policy.second];
      names += (names.empty() ? "" : ", ") + end.name;
    }
  for (const auto& policy : policies) {
    std::string text;
    for (const auto& value : policy.second)
      text += (text.empty() ? "" : "; ") + value.first +
              (policy.second.size() > 1 ? " (" + value.second + ")" : "");
    sink.put("qos." + policy.first, text);
  }
  std::string found;
  for (const EndFacts& end : ends) {
    found += ", " + end.name + " matched " + std::to_string(end.matched);
    if (!end.incompatible.empty()) sink.put("incompatible_qos", end.incompatible + " (" + end.name + ")");
  }
  sink.put_chosen("others", std::to_string(others));
  sink.put_chosen("discovery", scope + ": found " + std::to_string(others) + " other " + kind + found);
}

inline rtmeter::SetupError too_large_for_loans(std::uint32_t payload_bytes, std::size_t limit) {
  return rtmeter::SetupError("payload_bytes", std::to_string(payload_bytes),
                             "loans carry at most " + std::to_string(limit) + " bytes of payload",
                             "choose a smaller payload, or option loan=no");
}

}  // namespace rtmeter_common
