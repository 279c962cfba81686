#include "probe/log_header.hpp"

#include "measure/measurement.hpp"
#include "system/clock_anchors.hpp"
#include "system/machine.hpp"

namespace rtmeter {

Json log_header(const Config& config, const Json& adapter, bool scripted) {
  Json columns = Json::array();
  for (const std::string& name : columns_of(config)) {
    const bool is_time = name.size() > 3 && name.compare(name.size() - 3, 3, "_ns") == 0;
    const char* unit = name == "status" ? "code" : is_time ? "ns" : "1";
    columns.push(Json(Json::Object{{"name", name}, {"unit", unit}}));
  }
  Json clock = Json::object();
  clock["id"] = scripted ? "scripted" : "CLOCK_MONOTONIC";
  clock["anchors"] = clock_anchors();
  return Json(Json::Object{{"format", "rtmeter-sample-log"},
                           {"version", 1},
                           {"measurement", name_of(config.measurement)},
                           {"mode", config.measurement == RTM_TIMER ? Json(name_of(config.mode)) : Json()},
                           {"role", name_of(config.role)},
                           {"columns", columns},
                           {"absent", kAbsent},
                           {"statuses", Json(Json::Object{{"in_flight", kInFlight},
                                                          {"served", kServed},
                                                          {"skipped", kSkipped},
                                                          {"lost", kLost},
                                                          {"warm_up_flag", kWarmUpFlag}})},
                           {"warm_up", config.only_serves() ? 0 : config.warm_up},
                           {"samples", config.samples},
                           {"period_ns", config.period_ns},
                           {"config", config.as_read},
                           {"adapter", adapter},
                           {"machine", machine_facts()},
                           {"clock", clock}});
}

}  // namespace rtmeter
