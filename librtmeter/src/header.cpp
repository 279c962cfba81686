#include "header.hpp"

#include <cstdio>
#include <fstream>

#include "log/recorder.hpp"
#include "system/clock_anchors.hpp"
#include "system/machine.hpp"

namespace rtmeter {
namespace {

// In a time namespace the clocks are shifted against those of the host, and of the kernel's trace.
Json time_namespace() {
  std::ifstream file("/proc/self/timens_offsets");
  std::string clock;
  std::int64_t s = 0, ns = 0;
  Json offsets = Json::object();
  bool shifted = false;
  while (file >> clock >> s >> ns) {
    offsets[clock + "_ns"] = s * 1'000'000'000 + ns;
    shifted = shifted || s != 0 || ns != 0;
  }
  return shifted ? offsets : Json();
}

Json doubt(const char* type, const std::string& message, const char* hint) {
  return Json(Json::Object{{"type", type}, {"message", message}, {"hint", hint}});
}

}  // namespace

Json loop_header(const std::string& name, std::int64_t period_ns, std::int64_t deadline_ns, double miss_ratio,
                 std::int64_t warm_up) {
  Json clock = Json::object();
  clock["id"] = "CLOCK_MONOTONIC";
  clock["anchors"] = clock_anchors();
  if (const Json offsets = time_namespace(); !offsets.is_null()) clock["time_namespace"] = offsets;
  const Json config(Json::Object{{"loop", name},
                                 {"period_ns", period_ns},
                                 {"deadline_ns", deadline_ns},
                                 {"miss_ratio", miss_ratio > 0 ? Json(miss_ratio) : Json()},
                                 {"warm_up", warm_up}});
  return Json(Json::Object{{"format", "rtmeter-sample-log"},
                           {"version", 1},
                           {"measurement", "own_loop"},
                           {"mode", Json()},
                           {"role", "single"},
                           {"absent", kAbsent},
                           {"statuses", Json(Json::Object{{"in_flight", kInFlight},
                                                          {"served", kServed},
                                                          {"skipped", kSkipped},
                                                          {"lost", kLost},
                                                          {"warm_up_flag", kWarmUpFlag}})},
                           {"warm_up", warm_up},
                           {"period_ns", period_ns},
                           {"config", config},
                           {"adapter", Json(Json::Object{{"name", "own"}})},
                           {"machine", machine_facts()},
                           {"clock", clock}});
}

Json loop_doubts(const Ticks& ticks, std::uint64_t due_refused, std::uint64_t due_off_grid) {
  Json list = Json::array();
  if (ticks.known() && std::string(ticks.t0_from()) == "inferred")
    list.push(
        doubt("grid_inferred",
              "the program does not say when it was due: the grid is that of its earliest wake-up, and what "
              "delays all of them alike is in no latency",
              "give rtm_loop_wake() the time that was slept for, or let rtm_loop_sleep() sleep"));
  if (due_refused > 0)
    list.push(
        doubt("due_of_another_clock",
              std::to_string(due_refused) +
                  " due times lay more than an hour ahead, or the first one as far back, and were not used",
              "give times of CLOCK_MONOTONIC, in ns"));
  if (due_off_grid > 0)
    list.push(
        doubt("due_off_grid",
              std::to_string(due_off_grid) +
                  " due times lay between the releases of the grid that the first one began: each counts for "
                  "the release before it, from which it is late by what lies between",
              "sleep until the first time plus whole periods, also after an overrun"));
  return list;
}

}  // namespace rtmeter
