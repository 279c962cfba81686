// Which ROS 2 is loaded, beside the one that the adapter was built with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <link.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <string>

#include "../dds/options.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_ros2 {

// Where the library is loaded from; empty if it is not.
inline std::string path_of_loaded(const std::string& library) {
  struct Search {
    const std::string end;
    std::string found;
  } search{"/" + library, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t /*size*/, void* into) {
        auto* wanted = static_cast<Search*>(into);
        const std::string path = info->dlpi_name;
        const std::size_t size = wanted->end.size();
        if (path.size() > size && path.compare(path.size() - size, size, wanted->end) == 0)
          wanted->found = path;
        return 0;
      },
      &search);
  return search.found;
}

// The version of the rclcpp that is loaded, as the package beside it says; empty if that is not known.
inline std::string loaded_version() {
  std::string folder = path_of_loaded("librclcpp.so");
  for (int level = 0; level < 4 && !folder.empty(); ++level) {
    folder.erase(folder.rfind('/'));
    std::ifstream file(folder + "/share/rclcpp/package.xml");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::smatch version;
    static const std::regex tag("<version>\\s*([0-9.]+)\\s*</version>");
    if (std::regex_search(text, version, tag)) return version[1].str();
  }
  return "";
}

// Another version's libraries would be loaded without a word, and called as if they were this one's.
inline void check_installation() {
  if (rtmeter_dds::setting("AMENT_PREFIX_PATH").empty())
    throw rtmeter::SetupError("AMENT_PREFIX_PATH", "", "no ROS 2 is sourced",
                              "source the setup.bash of the ROS 2 that rtmeter was built with");
  const std::string built = RTMETER_RCLCPP_VERSION, loaded = loaded_version();
  const auto release = [](const std::string& version) { return version.substr(0, version.rfind('.')); };
  if (!loaded.empty() && release(loaded) != release(built))
    throw rtmeter::SetupError("rclcpp", loaded,
                              "the adapter was built with rclcpp " + built +
                                  ", and this one is loaded from " + path_of_loaded("librclcpp.so"),
                              "source the setup.bash that it was built with, or build it again");
}

}  // namespace rtmeter_ros2
