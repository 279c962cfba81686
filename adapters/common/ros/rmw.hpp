// What the ROS 2 adapters have in common, over rmw's C interface: which middleware runs below ROS, in which
// domain, under which names, and what there is to tell of its ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rmw/error_handling.h>
#include <rmw/qos_string_conversions.h>
#include <rmw/rmw.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "../ends.hpp"
#include "../loaded.hpp"
#include "../session.hpp"
#include "../text.hpp"
#include "../threads.hpp"

namespace rtmeter_ros {

// The options of all of them.
struct OptionSet : rtmeter::OptionSet {
  rtmeter::Text rmw{*this, "rmw", "the RMW to load, instead of what RMW_IMPLEMENTATION says"};
  rtmeter_common::DomainOption domain{*this, "ROS_DOMAIN_ID, else "};
  rtmeter::ChoiceOf<rmw_qos_history_policy_t> history{
      *this,
      "history",
      {{"keep_last", RMW_QOS_POLICY_HISTORY_KEEP_LAST}, {"keep_all", RMW_QOS_POLICY_HISTORY_KEEP_ALL}},
      "of publishers and subscriptions"};
  rtmeter::ChoiceOf<rmw_qos_durability_policy_t> durability{
      *this,
      "durability",
      {{"volatile", RMW_QOS_POLICY_DURABILITY_VOLATILE},
       {"transient_local", RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL}},
      "of publishers and subscriptions"};
  rtmeter_common::ThreadsOption threads{*this};
};

// The RMWs that can be loaded here, as the ament index lists them.
inline std::vector<std::string> installed_rmws() {
  std::vector<std::string> all;
  for (const std::string& prefix :
       rtmeter_common::split(rtmeter_common::environment("AMENT_PREFIX_PATH"), ':'))
    for (const std::string& name :
         rtmeter_common::names_in(prefix + "/share/ament_index/resource_index/rmw_typesupport", "rmw_"))
      if (name != "rmw_implementation" && std::find(all.begin(), all.end(), name) == all.end())
        all.push_back(name);
  std::sort(all.begin(), all.end());
  return all;
}

// When rcl is loaded, before main(), it ends the process if another RMW is there than RMW_IMPLEMENTATION
// says. So that the reason can be told, the variable is out of its sight until then, under another name.
inline constexpr const char* kHiddenVariable = "_MW_IMPLEMENTATION";
inline void hide_rmw(int /*argc*/, char** /*argv*/, char** environment) {
  constexpr const char* kAssignment = "RMW_IMPLEMENTATION=";
  for (; *environment != nullptr; ++environment)
    if (std::strncmp(*environment, kAssignment, std::strlen(kAssignment)) == 0) **environment = '_';
}
// An executable's own list of what runs before the libraries are initialised.
__attribute__((section(".preinit_array"), used)) static void (*const hide_rmw_first)(int, char**,
                                                                                     char**) = &hide_rmw;

// Chooses the RMW and loads it: option rmw, else RMW_IMPLEMENTATION, else as ROS does. Throws if that is not
// what is then there.
inline void load_rmw(const rtm_run& run, const OptionSet& options) {
  const std::string option = options.rmw.of(run);
  const std::string wanted = option.empty() ? rtmeter_common::environment(kHiddenVariable) : option;
  if (!wanted.empty() && rtmeter_common::environment("RMW_IMPLEMENTATION") != wanted)
    setenv("RMW_IMPLEMENTATION", wanted.c_str(), 1);
  const char* loaded = nullptr;
  std::string complaint;
  try {
    loaded = rmw_get_implementation_identifier();
    if (loaded == nullptr) complaint = rmw_get_error_string().str;
  } catch (const std::exception& error) {  // older ones throw what newer ones say
    complaint = error.what();
  }
  rmw_reset_error();
  if (loaded != nullptr && (wanted.empty() || wanted == loaded)) return;
  const std::vector<std::string> installed = installed_rmws();
  const std::string known = !installed.empty()  ? rtmeter_common::joined(installed, ", ")
                            : loaded != nullptr ? loaded
                                                : "none";
  throw rtmeter::SetupError(option.empty() ? "RMW_IMPLEMENTATION" : options.rmw.field(), wanted,
                            loaded == nullptr ? "cannot be loaded. " + complaint
                                              : "is not there: what is loaded is " + std::string(loaded),
                            "choose one of " + known + ", or install the package that has it");
}

// The library below the RMW, by the name of the file that is loaded: its version is in it.
inline std::string loaded_middleware() {
  return rtmeter_common::loaded_library(
      {"libfastdds", "libfastrtps.so", "libfastrtps-", "libddsc.so", "libzenohc.so", "libnddsc.so"});
}

// Option domain, else ROS_DOMAIN_ID, else one that follows from the session.
inline std::size_t domain_of(const rtm_run& run, const OptionSet& options) {
  const std::string given = rtmeter_common::environment("ROS_DOMAIN_ID");
  if (given.empty() || options.domain.given(run)) return options.domain.of(run);
  return static_cast<std::size_t>(options.domain.parse(given, "ROS_DOMAIN_ID"));
}

// Nobody else's topic has this name. No part of it begins with a digit.
inline std::string topic_name(const rtm_run& run, const std::string& topic) {
  const std::string name = rtmeter_common::topic_name(run, topic);  // rtmeter/SESSION/TOPIC
  return "/rtmeter/s" + name.substr(name.find('/') + 1);
}

// The quality of service of a run: what it and the options say, the rest as ROS has it.
inline rmw_qos_profile_t qos_of(const rtm_run& run, const OptionSet& options) {
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  qos.depth = run.history_depth;
  qos.reliability = run.reliability == RTM_RELIABLE ? RMW_QOS_POLICY_RELIABILITY_RELIABLE
                                                    : RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  qos.history = options.history.of(run);
  qos.durability = options.durability.of(run);
  return qos;
}

// The policies that a publisher or subscription really has.
inline void add_policies(const rmw_qos_profile_t& qos, rtmeter_common::EndFacts& facts) {
  const auto put = [&](const char* policy, const char* value) {
    facts.policies[policy] = value == nullptr ? "unknown" : value;
  };
  put("reliability", rmw_qos_reliability_policy_to_str(qos.reliability));
  put("history", rmw_qos_history_policy_to_str(qos.history));
  put("durability", rmw_qos_durability_policy_to_str(qos.durability));
  put("liveliness", rmw_qos_liveliness_policy_to_str(qos.liveliness));
  facts.policies["depth"] = std::to_string(qos.depth);
}

// An end of a service or an action, with its profile.
inline rtmeter_common::EndFacts request_facts(const std::string& name, const rmw_qos_profile_t& qos,
                                              bool is_matched) {
  rtmeter_common::EndFacts facts;
  facts.name = name;
  add_policies(qos, facts);
  facts.matched = is_matched ? 1 : 0;
  return facts;
}

// The policy that kept two ends from matching; empty for none.
inline std::string policy_name(rmw_qos_policy_kind_t kind) {
  if (kind == RMW_QOS_POLICY_INVALID) return "";
  const char* name = rmw_qos_policy_kind_to_str(kind);
  return name == nullptr ? "policy " + std::to_string(kind) : name;
}

// Whom they answer, and the threads that are neither the core's nor the adapter's.
inline void describe_rmw_static(rtmeter::Sink& sink) {
  sink.put("wire", "ros2");
  sink.put("brings", "*: those of the RMW that is loaded, and of rcl and what is above it");
}

// What is in effect below ROS, and the variables of the environment that say so.
inline void describe_rmw(rtmeter::Sink& sink, std::size_t domain, const rtm_run& run,
                         const OptionSet& options) {
  const char* loaded = rmw_get_implementation_identifier();
  sink.put("rmw", loaded == nullptr ? "none" : loaded).put("rmw_library", loaded_middleware());
  const bool asked = options.domain.given(run) || !rtmeter_common::environment("ROS_DOMAIN_ID").empty();
  if (asked)
    sink.put("domain", std::to_string(domain));
  else
    sink.put_chosen("domain", std::to_string(domain));
  for (const char* variable :
       {"RMW_IMPLEMENTATION", "ROS_DOMAIN_ID", "ROS_DISTRO", "ROS_AUTOMATIC_DISCOVERY_RANGE",
        "ROS_STATIC_PEERS", "ROS_LOCALHOST_ONLY", "ROS_DISABLE_LOANED_MESSAGES", "CYCLONEDDS_URI",
        "FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_BUILTIN_TRANSPORTS",
        "RMW_FASTRTPS_USE_QOS_FROM_XML", "RMW_FASTRTPS_PUBLICATION_MODE", "ZENOH_SESSION_CONFIG_URI"}) {
    const std::string value = rtmeter_common::environment(variable);
    if (!value.empty()) sink.put(std::string("environment.") + variable, value);
  }
}

// Where a run looks for its other end.
inline std::string discovery_scope(std::size_t domain) {
  const char* loaded = rmw_get_implementation_identifier();
  return std::string(loaded == nullptr ? "no RMW" : loaded) + ", domain " + std::to_string(domain);
}

// Whether a clock that ROS calls steady is CLOCK_MONOTONIC, of which it must then give a time between two
// others; older ROS 2 reads CLOCK_MONOTONIC_RAW, which runs at another rate.
template <typename Now>
bool is_monotonic(Now&& ros_now_ns) {
  const auto monotonic_ns = [] {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::int64_t>(t.tv_sec) * 1000000000 + t.tv_nsec;
  };
  const std::int64_t before = monotonic_ns(), ros = ros_now_ns(), after = monotonic_ns();
  return before <= ros && ros <= after;
}

}  // namespace rtmeter_ros
