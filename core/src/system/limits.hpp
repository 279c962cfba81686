// What the system allows this process: capabilities, resource limits, control groups, CPUs. Only read,
// to explain why a setting did not take. Setup only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rtmeter {

// A file's text without trailing newlines or NULs; nullopt if it cannot be read.
std::optional<std::string> read_text(const std::string& path);

// The value of `key:` in a /proc status file, without its indentation; nullopt if absent.
std::optional<std::string> status_value(const std::string& path, const std::string& key);

// "/proc/<tid>" of a thread of this process; tid 0: the caller.
std::string proc_of(int tid);

// True if the calling thread holds the capability where the kernel asks for it: in the initial user
// namespace. Number as in <linux/capability.h>.
bool has_capability(int capability);

// The soft limit of an RLIMIT_… resource; nullopt: unlimited.
std::optional<std::uint64_t> resource_limit(int resource);
std::string limit_text(std::optional<std::uint64_t> limit);  // "unlimited", "65536"

// The directory of a thread's control group: version 1 if the controller is mounted so, else 2.
struct ControlGroup {
  std::string directory;  // where its files are
  std::string mount;      // the root group's directory
  std::string name;       // path below the root group, "/" for the root group
  int version = 0;
};
std::optional<ControlGroup> control_group(int tid, const std::string& controller);

// "0-3,7" and {0, 1, 2, 3, 7}; parsing stops at what is not a list.
std::vector<int> parse_cpu_list(const std::string& text);
std::string cpu_list_text(const std::vector<int>& cpus);

std::vector<int> online_cpus();
std::vector<int> possible_cpus();

}  // namespace rtmeter
