#include "probe/methods.hpp"

#include <iostream>
#include <map>

#include "errors.hpp"
#include "measure/session.hpp"

namespace rtmeter {
namespace {

using Names = std::vector<std::string>;

Names listed(const Json& description, const char* key, const std::string& of, const Names& otherwise) {
  const Json* lists = description.find(key);
  const Json* list = lists == nullptr ? nullptr : lists->find(of);
  if (list == nullptr || !list->is_array()) return otherwise;
  Names names;
  for (const Json& item : list->as_array()) names.push_back(item.as_string());
  return names;
}

bool fits(const std::string& drive, const std::string& receive) {
  if (drive == "spin") return receive == "spin" || receive == "listener";
  return drive == "poll" ? receive == "poll" : receive != "spin";
}

const char* call_of(const std::string& receive) {
  return receive == "spin" || receive == "listener" ? "spin" : receive == "spin_once" ? "wait" : "spin_some";
}

bool has(const rtm_adapter& a, const std::string& method) {
  const std::map<std::string, bool> known = {{"create_node", a.create_node != nullptr},
                                             {"create_timer", a.create_timer != nullptr},
                                             {"create_publisher", a.create_publisher != nullptr},
                                             {"create_subscriber", a.create_subscriber != nullptr},
                                             {"arm", a.arm != nullptr},
                                             {"publish", a.publish != nullptr},
                                             {"spin", a.spin != nullptr},
                                             {"wait", a.wait != nullptr},
                                             {"spin_some", a.spin_some != nullptr},
                                             {"interrupt", a.interrupt != nullptr},
                                             {"create_client", a.create_client != nullptr},
                                             {"create_server", a.create_server != nullptr},
                                             {"call", a.call != nullptr},
                                             {"reply", a.reply != nullptr},
                                             {"watch", a.watch != nullptr},
                                             {"tell_stamps", a.tell_stamps != nullptr}};
  return known.at(method);
}

}  // namespace

std::vector<WayToMeasure> ways_of(const Json& description) {
  const Json* measures = description.find("measures");
  std::vector<WayToMeasure> ways;
  if (measures == nullptr || !measures->is_array()) return ways;
  const Names receives = {"spin", "spin_once", "poll"};
  for (const Json& item : measures->as_array()) {
    const std::string& measure = item.as_string();
    const std::string kind = measure.substr(0, measure.find('.'));
    if (kind == "timer") {
      for (const auto& drive : listed(description, "drives", kind, {"spin"}))
        ways.push_back({measure, drive, ""});
    } else if (kind == "roundtrip" || kind == "request") {
      for (const auto& way : listed(description, "receives", kind, receives))
        ways.push_back({measure, "", way});
    } else if (kind == "cycle") {
      for (const auto& drive : listed(description, "drives", kind, {"sleep_then_spin_some"}))
        for (const auto& way : listed(description, "receives", kind, receives))
          if (fits(drive, way)) ways.push_back({measure, drive, way});
    } else {
      ways.push_back({measure, "", ""});
    }
  }
  return ways;
}

std::vector<std::string> methods_of(const WayToMeasure& way) {
  const bool spins = way.drive == "spin", listens = way.receive == "listener";
  if (way.measure == "timer.one_shot")
    return {"create_node", "create_timer", "arm", spins ? "wait" : "spin_some"};
  if (way.measure == "timer.periodic" && spins)
    return {"create_node", "create_timer", "arm", "spin", "interrupt"};
  if (way.measure == "timer.periodic") return {"create_node", "create_timer", "arm", "spin_some"};
  if (way.measure == "wakeup") return {"create_node"};
  if (way.measure == "chain")
    return {"create_node", "create_publisher", "create_subscriber", "publish", "wait", "interrupt"};
  if (way.measure == "discovery")
    return {"create_node", "create_publisher", "create_subscriber", "publish", "wait"};
  const bool is_request = way.measure == "request";
  Names names = {"create_node", is_request ? "create_client" : "create_publisher",
                 is_request ? "create_server" : "create_subscriber"};
  const auto add = [&](const char* name) {
    for (const std::string& known : names)
      if (known == name) return;
    names.emplace_back(name);
  };
  if (is_request || way.measure == "roundtrip") {
    add(is_request ? "call" : "publish");
    if (is_request) add("reply");
    if (way.receive == "call") {  // the server's
      add("spin");
      add("interrupt");
      return names;
    }
    if (!listens) add("wait");  // the client's, until the server has answered
    add(call_of(way.receive));
  } else {
    if (spins) add("create_timer");
    if (spins) add("arm");
    if (spins) add("spin");
    add("publish");
    if (!listens) add(spins ? "wait" : call_of(way.receive));  // spins: for the last answers
  }
  if (spins || call_of(way.receive) == std::string("spin")) add("interrupt");  // nothing else ends a spin
  return names;
}

void require_methods(const rtm_adapter& adapter, const Json& description) {
  if (description.find("kernel_stamps") != nullptr && !has(adapter, "tell_stamps"))
    throw Failure("kernel_stamps", "roundtrip", "needs tell_stamps, which this adapter does not have",
                  "implement it, or take this from what describe lists");
  if (const Json* ends = description.find("matches"); ends != nullptr && !has(adapter, "watch"))
    throw Failure("matches", ends->as_array().front().as_string(),
                  "needs watch, which this adapter does not have",
                  "implement it, or take this from what describe lists");
  for (const WayToMeasure& way : ways_of(description)) {
    std::string lacks;
    for (const std::string& method : methods_of(way))
      if (!has(adapter, method)) lacks += (lacks.empty() ? "" : ", ") + method;
    if (lacks.empty()) continue;
    const std::string kind = way.measure.substr(0, way.measure.find('.'));
    const bool driven = !way.drive.empty(), received = !way.receive.empty();
    throw Failure(driven     ? "drives." + kind
                  : received ? "receives." + kind
                             : "measures",
                  driven     ? way.drive
                  : received ? way.receive
                             : way.measure,
                  way.measure + " needs " + lacks + ", which this adapter does not have",
                  "implement it, or take this from what describe lists");
  }
}

int print_description(const rtm_adapter& adapter) {
  try {
    const Json description = describe(adapter, nullptr);
    require_methods(adapter, description);
    std::cout << description.dump() << std::endl;
    return 0;
  } catch (const Failure& f) {
    std::cerr << f.field() << " = " << f.value() << ": " << f.what() << "; " << f.remedy() << std::endl;
    return 1;
  }
}

}  // namespace rtmeter
