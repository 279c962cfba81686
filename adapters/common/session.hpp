// What keeps runs apart that know nothing of each other: domains and names of topics that follow from the
// session.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "rtmeter/adapter.hpp"

namespace rtmeter_common {

// Both ends, whatever implementation, agree.
inline std::uint32_t hash_of(const std::string& text) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}
inline std::uint32_t hash_of_session(const rtm_run& run) { return hash_of(run.session); }

// A port that all of a session agree on, below those that the kernel gives out.
inline int port_of(const rtm_run& run) { return static_cast<int>(10000 + hash_of_session(run) % 20000); }

// Option domain: 1 to 100 by default: 0 is everybody's, and above that ports would reach into those of
// clients.
class DomainOption : public rtmeter::Number {
 public:
  explicit DomainOption(rtmeter::OptionSet& set, const std::string& first = "")
      : Number(set, "domain", 0, 232,
               "by default " + first + "one of 1 to 100 that follows from the session") {}

  std::uint32_t of(const rtm_run& run) const {
    return static_cast<std::uint32_t>(Number::of(run, hash_of_session(run) % 100 + 1));
  }
};

// Nobody else's topic has this name. Names consist of letters, digits, _ and /: what else the session has
// is written in hexadecimal.
inline std::string topic_name(const rtm_run& run, const std::string& topic) {
  std::string name = "rtmeter/";
  for (const char* c = run.session; *c != '\0'; ++c) {
    const auto byte = static_cast<unsigned char>(*c);
    const bool plain =
        (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    char text[4] = {*c, '\0'};
    if (!plain) std::snprintf(text, sizeof text, "_%02x", byte);
    name += text;
  }
  return name + "/" + topic;
}

// That a name is too long: beside the session's there is room for `most` characters of the topic's. Of a
// chain topics are stages, which the user names.
inline rtmeter::SetupError too_long(rtm_measurement measurement, const std::string& session,
                                    const std::string& topic, long most, const std::string& limit) {
  if (measurement != RTM_CHAIN || most < 1)
    return rtmeter::SetupError("session", session, limit, "choose a shorter session");
  return rtmeter::SetupError("topic", topic, limit,
                             "name the stage by at most " + std::to_string(most) + " characters");
}

}  // namespace rtmeter_common
