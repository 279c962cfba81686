// Where a thread's control group is: cgroups(7), proc(5) for mountinfo.
#include <sstream>

#include "system/limits.hpp"

namespace rtmeter {
namespace {

struct Mount {
  std::string root, point;
};

bool in_list(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

// The mount of a version 1 controller, or of the unified hierarchy when controller is empty.
std::optional<Mount> find_mount(const std::string& controller) {
  std::istringstream lines(read_text("/proc/self/mountinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const auto separator = line.find(" - ");
    if (separator == std::string::npos) continue;
    std::string id, parent, device, type, source, options;
    Mount mount;
    std::istringstream(line) >> id >> parent >> device >> mount.root >> mount.point;
    std::istringstream(line.substr(separator + 3)) >> type >> source >> options;
    if (controller.empty() ? type == "cgroup2" : type == "cgroup" && in_list(options, controller)) {
      return mount;
    }
  }
  return std::nullopt;
}

// The thread's path in one hierarchy of /proc/<tid>/cgroup: "id:controllers:path".
std::optional<std::string> find_path(int tid, const std::string& controller) {
  std::istringstream lines(read_text(proc_of(tid) + "/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : in_list(controllers, controller)) {
      return line.substr(second + 1);
    }
  }
  return std::nullopt;
}

std::optional<ControlGroup> locate(int tid, const std::string& controller) {
  const auto mount = find_mount(controller);
  auto path = find_path(tid, controller);
  if (!mount || !path) return std::nullopt;
  // A container sees a part of the hierarchy: what is mounted starts at mount->root.
  if (mount->root != "/" && path->compare(0, mount->root.size(), mount->root) == 0) {
    path->erase(0, mount->root.size());
  }
  const bool at_root = path->empty() || *path == "/";
  ControlGroup group{mount->point, mount->point, at_root ? std::string("/") : *path,
                     controller.empty() ? 2 : 1};
  if (!at_root) group.directory += *path;
  return group;
}

}  // namespace

std::optional<ControlGroup> control_group(int tid, const std::string& controller) {
  if (auto group = locate(tid, controller)) return group;
  return locate(tid, "");
}

}  // namespace rtmeter
