// Doubts about a run's data that the probe itself has: typed, with what to do about them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "json/json.hpp"
#include "measure/config.hpp"

namespace rtmeter {

inline Json doubt(const char* type, const std::string& message, const char* hint) {
  return Json(Json::Object{{"type", type}, {"message", message}, {"hint", hint}});
}

inline Json doubt_of_children() {
  return doubt("no_child_threads", "child_threads or child_cpus is given, and the middleware has no threads",
               "leave it out; beside a wake-up threads may come with before init_and_node");
}

// exception: what the first that threw did, or "".
inline Json doubt_of_refused(std::uint64_t calls, const std::string& exception) {
  return doubt(
      "middleware_refused_calls",
      std::to_string(calls) + " calls on the measured path were refused by the middleware" + exception,
      "look at the middleware's own messages; check payload size and queue depths");
}

// Of a clock that hosts have in common, by what OtherClock says of it.
inline void add_doubts_of_shared_clock(const Json& facts, Json& list) {
  if (facts.find("failed")->as_bool())
    list.push(doubt("shared_clock_failed",
                    facts.find("id")->as_string() + " could not be read any more while it was measured",
                    "was its network card taken away?"));
  const Json *utc_offset = facts.find("utc_offset_s"), *synchronised = facts.find("synchronised");
  if (utc_offset->is_int() && utc_offset->as_int() == 0)
    list.push(doubt("tai_offset_unset",
                    "CLOCK_TAI shows UTC: nobody has told this kernel by how many seconds they differ",
                    "let phc2sys, or chrony with leapsectz right/UTC, set it, on both hosts alike"));
  if (synchronised->is_bool() && !synchronised->as_bool())
    list.push(doubt("clock_not_synchronised", "this kernel says that its clock is synchronised with no other",
                    "run ptp4l and phc2sys, or chrony, on both hosts"));
}

// Of a deadline policy's runtime.
inline std::optional<Json> doubt_of_overruns(const Config& config, std::int64_t overruns) {
  if (overruns <= 0) return std::nullopt;
  return doubt("deadline_overruns",
               "the measured thread used up its runtime (" + to_string(config.scheduling) + ") " +
                   std::to_string(overruns) + (overruns == 1 ? " time" : " times") +
                   " before its work was done, and had to wait for its next period",
               "give it more runtime: usage.cpu_ns is what it took in all");
}

inline Json doubt_of_rescues(int times) {
  return doubt("helpers_starved",
               "rtmeter's own writer and supervisor got no CPU for ten seconds " +
                   std::string(times == 1 ? "once" : std::to_string(times) + " times") +
                   ", and ran above everything until they were heard again",
               "leave a CPU that the measured threads do not keep to themselves; was the machine, or the "
               "probe, stopped?");
}

// Where most of what was released was lost or passed over: what usually is to blame. adapter: what it says of
// itself, with the depth of its queues if it has any.
inline std::optional<Json> doubt_of_lost(const Config& config, const Json& adapter, std::uint64_t released,
                                         std::uint64_t lost, std::uint64_t skipped) {
  if (config.only_serves() || config.measurement == RTM_CHAIN || (lost + skipped) * 2 <= released)
    return std::nullopt;
  const auto of_all = [&](std::uint64_t count, const char* what) {
    return std::to_string(count) + " of " + std::to_string(released) + " releases were " + what;
  };
  const std::string counts = lost == 0 ? of_all(skipped, "skipped")
                             : skipped == 0
                                 ? of_all(lost, "lost")
                                 : of_all(lost, "lost") + " and " + std::to_string(skipped) + " skipped";
  if (config.measurement == RTM_DISCOVERY)
    return doubt("mostly_lost", counts + ": not all participants had found each other, and heard a message",
                 "give more time (loss_timeout, and a longer period), fewer participants, or see the "
                 "middleware's messages");
  if (!config.is_exchange() || lost == 0)
    return doubt(
        "mostly_skipped", counts,
        "the period is shorter than what is done in it, or the thread gets too little CPU: lengthen the "
        "period, or look at load, priority and CPUs");
  const Json* qos = adapter.find("qos");
  const Json* depth = qos == nullptr ? nullptr : qos->find("depth");
  const bool is_told = depth != nullptr && depth->is_string();
  const std::string asked = is_told && config.measurement != RTM_REQUEST ? "history_depth: " : "";
  const std::string hint =
      "a queue may be too short (" + asked +
      "messages that come before one is taken replace or refuse others), the loss timeout too short, the "
      "thread without a CPU, or the other end gone; one that is lost passes over all that are released until "
      "its timeout; see the middleware's messages";
  return doubt("mostly_lost", is_told ? counts + ", with a queue depth of " + depth->as_string() : counts,
               hint.c_str());
}

}  // namespace rtmeter
