#include "system/path.hpp"

#include <algorithm>
#include <fstream>
#include <istream>
#include <map>
#include <sstream>
#include <string>

namespace rtmeter {

std::string carried_by(const Published& published, const SendsByWire& sent, bool shares_memory) {
  const std::uint64_t payload_bytes = published.messages * published.payload_bytes;
  for (std::size_t i = 0; i < kWires; ++i)
    if (sent[i].calls * 2 >= published.messages && sent[i].bytes * 2 >= payload_bytes)
      return name_of(static_cast<Wire>(i));
  return published.to_itself ? "process" : shares_memory ? "shared_memory" : "unknown";
}

Json shared_files(std::istream& maps) {
  std::map<std::string, std::uint64_t> found;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, rights, offset, device, inode, name;
    words >> range >> rights >> offset >> device >> inode >> std::ws;
    std::getline(words, name);
    if (rights.size() != 4 || rights[1] != 'w' || rights[3] != 's') continue;
    if (name.rfind("/dev/shm/", 0) != 0 && name.rfind("/memfd:", 0) != 0) continue;
    const std::size_t dash = range.find('-');
    found[name] += std::stoull(range.substr(dash + 1), nullptr, 16) - std::stoull(range, nullptr, 16);
  }
  Json files = Json::array();
  for (const auto& [name, bytes] : found) files.push(Json(Json::Object{{"name", name}, {"bytes", bytes}}));
  return files;
}

Json within_process(const Json& adapter, const Json& path) {
  const Json* carried = path.find("carried_by");
  Json facts = Json::object();
  for (const auto& [key, value] : adapter.as_object()) {
    facts[key == "transport" ? "transport_asked" : key] = value;
    if (key == "transport" && carried != nullptr) facts["transport"] = *carried;
  }
  return facts;
}

Json Path::to_json(const Published& published) const {
  if (published.messages == 0) return Json();
  SendsByWire sent = sends_so_far();
  Json sockets = Json::object();
  for (std::size_t i = 0; i < kWires; ++i) {
    sent[i].calls -= std::min(sent[i].calls, before_[i].calls);
    sent[i].bytes -= std::min(sent[i].bytes, before_[i].bytes);
    if (sent[i].calls > 0)
      sockets[name_of(static_cast<Wire>(i))] =
          Json(Json::Object{{"calls", sent[i].calls}, {"bytes", sent[i].bytes}});
  }
  std::ifstream maps("/proc/self/maps");
  const Json shared = shared_files(maps);
  return Json(Json::Object{{"carried_by", carried_by(published, sent, !shared.as_array().empty())},
                           {"messages", published.messages},
                           {"payload_bytes", published.messages * published.payload_bytes},
                           {"sockets", sockets},
                           {"shared_memory", shared}});
}

}  // namespace rtmeter
