// How keys of the probe config are read: each with its kind and limits, unknown ones refused.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "json/json.hpp"

namespace rtmeter {

// A value and what it is called in configs.
template <typename T>
struct Name {
  T value;
  const char* name;
};

template <typename T, std::size_t N>
const char* name_in(const Name<T> (&names)[N], T value) {
  for (const auto& n : names)
    if (n.value == value) return n.name;
  return "?";
}

// Reads keys of one object and remembers which were asked for, so that unknown ones are errors.
class Reader {
 public:
  // path: what the keys are below, such as "second_topic."
  explicit Reader(const Json& json, std::string path = "") : json_(json), path_(std::move(path)) {
    if (!json.is_object())
      throw Failure(path_.empty() ? "config" : path_, json.dump(), "is not a JSON object",
                    "see spec/probe.md");
  }

  const Json* get(const std::string& key) {
    known_.insert(key);
    const Json* value = json_.find(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }

  std::optional<std::int64_t> integer(const std::string& key, std::int64_t least, std::int64_t most) {
    const Json* value = get(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_int() || value->as_int() < least || value->as_int() > most)
      throw Failure(path_ + key, value->dump(),
                    "must be an integer from " + std::to_string(least) + " to " + std::to_string(most),
                    "give it as an integer; times are nanoseconds");
    return value->as_int();
  }

  template <typename T, std::size_t N>
  std::optional<T> choice(const std::string& key, const Name<T> (&names)[N]) {
    const Json* value = get(key);
    if (value == nullptr) return std::nullopt;
    std::string all;
    for (const auto& n : names) {
      if (value->is_string() && value->as_string() == n.name) return n.value;
      all += std::string(all.empty() ? "" : ", ") + n.name;
    }
    throw Failure(path_ + key, value->dump(), "is not one of " + all, "choose one of " + all);
  }

  std::optional<std::string> text(const std::string& key) {
    const Json* value = get(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string())
      throw Failure(path_ + key, value->dump(), "must be a string", "put it in quotes");
    return value->as_string();
  }

  bool flag(const std::string& key) {
    const Json* value = get(key);
    if (value == nullptr) return false;
    if (!value->is_bool())
      throw Failure(path_ + key, value->dump(), "must be true or false", "give true or false");
    return value->as_bool();
  }

  // Empty if the key is absent.
  std::vector<int> cpus(const std::string& key) {
    constexpr std::int64_t kMost = 8191;  // of Linux
    const Json* value = get(key);
    if (value == nullptr) return {};
    const auto is_cpu = [](const Json& cpu) {
      return cpu.is_int() && cpu.as_int() >= 0 && cpu.as_int() <= kMost;
    };
    if (!value->is_array() || !std::all_of(value->as_array().begin(), value->as_array().end(), is_cpu))
      throw Failure(path_ + key, value->dump(), "must be a list of CPU numbers", "give e.g. [0, 2]");
    if (value->as_array().empty())
      throw Failure(path_ + key, "[]", "names no CPU", "name at least one CPU, or leave it out");
    std::vector<int> cpus;
    for (const Json& cpu : value->as_array()) cpus.push_back(static_cast<int>(cpu.as_int()));
    return cpus;
  }

  std::vector<std::pair<std::string, std::string>> texts(const std::string& key) {
    const Json* value = get(key);
    std::vector<std::pair<std::string, std::string>> texts;
    if (value == nullptr) return texts;
    if (!value->is_object())
      throw Failure(path_ + key, value->dump(), "is not a JSON object", "see spec/probe.md");
    for (const auto& [name, text] : value->as_object()) {
      if (!text.is_string())
        throw Failure(path_ + key + "." + name, text.dump(), "must be a string", "put it in quotes");
      texts.emplace_back(name, text.as_string());
    }
    return texts;
  }

  void refuse_unknown() const {
    for (const auto& [key, value] : json_.as_object())
      if (known_.count(key) == 0)
        throw Failure(path_ + key, value.dump(), "is not a key of the probe config", "see spec/probe.md");
  }

 private:
  const Json& json_;
  const std::string path_;
  std::set<std::string> known_;
};

template <typename T>
T required(std::optional<T> value, const std::string& key, const std::string& why) {
  if (!value) throw Failure(key, "", "is missing: " + why, "add it to the config");
  return *std::move(value);
}

}  // namespace rtmeter
