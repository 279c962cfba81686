// Which ROS 2 is loaded, beside the one that the adapter was built with: names of libraries have no version,
// so the loader takes another distribution's without a word. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <link.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "rtmeter/adapter.hpp"

namespace rtmeter_ros {

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

// The version of a library's package, as the package.xml that is installed with it says; empty if there is
// none.
inline std::string loaded_version(const std::string& package, const std::string& library) {
  std::string folder = path_of_loaded(library);
  for (int level = 0; level < 4 && !folder.empty(); ++level) {
    folder.erase(folder.rfind('/'));
    std::ifstream file(folder + "/share/" + package + "/package.xml");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::smatch version;
    static const std::regex tag("<version>\\s*([0-9.]+)\\s*</version>");
    if (std::regex_search(text, version, tag)) return version[1].str();
  }
  return "";
}

// Throws if the package that is loaded is of another release (all of its version but the last number).
inline void check_installation(const std::string& package, const std::string& built) {
  const std::string library = "lib" + package + ".so", loaded = loaded_version(package, library);
  const auto release = [](const std::string& version) { return version.substr(0, version.rfind('.')); };
  if (!loaded.empty() && release(loaded) != release(built))
    throw rtmeter::SetupError(package, loaded,
                              "the adapter was built with " + package + " " + built +
                                  ", and this one is loaded from " + path_of_loaded(library),
                              "source the setup.bash that it was built with, or build it again");
}

}  // namespace rtmeter_ros
