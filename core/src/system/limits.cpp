#include "system/limits.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

namespace rtmeter {

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text;
  try {
    text.assign(std::istreambuf_iterator<char>(file), {});
  } catch (
      const std::ios_base::failure&) {  // opened but cannot be read: a directory, a thread that just ended
    return std::nullopt;
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

std::optional<std::string> status_value(const std::string& path, const std::string& key) {
  const auto text = read_text(path);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const auto colon = line.find_first_not_of(" \t", key.size());
    if (colon == std::string::npos || line[colon] != ':') continue;
    const auto value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return std::nullopt;
}

std::string proc_of(int tid) {
  return "/proc/" + std::to_string(tid == 0 ? static_cast<int>(gettid()) : tid);
}

bool has_capability(int capability) {
  const auto text = status_value(proc_of(0) + "/status", "CapEff");
  if (!text) return false;
  std::uint64_t mask = 0;
  std::from_chars(text->data(), text->data() + text->size(), mask, 16);
  if (((mask >> capability) & 1) == 0) return false;
  // A capability held in a user namespace of its own does not count for scheduling and memory.
  const auto map = read_text("/proc/self/uid_map");
  if (!map) return true;
  std::istringstream fields(*map);
  std::uint64_t inside = 0, outside = 0, count = 0;
  fields >> inside >> outside >> count;
  return inside == 0 && outside == 0 && count == 0xffffffffU;
}

std::optional<std::uint64_t> resource_limit(int resource) {
  rlimit limit{};
  getrlimit(static_cast<decltype(RLIMIT_RTPRIO)>(resource), &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::string limit_text(std::optional<std::uint64_t> limit) {
  return limit ? std::to_string(*limit) : "unlimited";
}

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  std::istringstream ranges(text);
  for (std::string range; std::getline(ranges, range, ',');) {
    int first = 0;
    const char* end = range.data() + range.size();
    auto [after, error] = std::from_chars(range.data(), end, first);
    if (error != std::errc{}) break;
    int last = first;
    if (after != end && *after == '-') std::from_chars(after + 1, end, last);
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::string cpu_list_text(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[i]);
    if (last > i) text += '-' + std::to_string(cpus[last]);
    i = last + 1;
  }
  return text;
}

std::vector<int> online_cpus() {
  return parse_cpu_list(read_text("/sys/devices/system/cpu/online").value_or(""));
}

std::vector<int> possible_cpus() {
  return parse_cpu_list(read_text("/sys/devices/system/cpu/possible").value_or(""));
}

}  // namespace rtmeter
