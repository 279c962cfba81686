// Which library was loaded, by its file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>
#include <link.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rtmeter_common {

// The names in a folder that begin so.
inline std::vector<std::string> names_in(const std::string& folder, const std::string& beginning) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), &closedir);
  while (const dirent* entry = entries == nullptr ? nullptr : readdir(entries.get()))
    if (std::string(entry->d_name).compare(0, beginning.size(), beginning) == 0)
      names.emplace_back(entry->d_name);
  return names;
}

// The library that is loaded and whose file's name begins with one of these: that name, with the version in
// it. Empty if there is none.
inline std::string loaded_library(const std::vector<std::string>& beginnings) {
  std::pair<const std::vector<std::string>&, std::string> sought{beginnings, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        const std::unique_ptr<char, void (*)(void*)> real(realpath(info->dlpi_name, nullptr), &std::free);
        const std::string path = real == nullptr ? "" : real.get();
        const std::string file = path.substr(path.rfind('/') + 1);
        auto& [known, found] = *static_cast<decltype(sought)*>(into);
        for (const std::string& one : known)
          if (file.compare(0, one.size(), one) == 0) found = path;
        return 0;
      },
      &sought);
  // Where files were copied instead of linked, the one with the whole version lies beside.
  const std::size_t slash = sought.second.rfind('/');
  if (slash == std::string::npos) return "";
  std::string longest = sought.second.substr(slash + 1);
  for (const std::string& name : names_in(sought.second.substr(0, slash), longest + "."))
    if (name.size() > longest.size()) longest = name;
  return longest;
}

}  // namespace rtmeter_common
