// What the DDS adapters have in common: their options, and the names that keep runs apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "rtmeter/adapter.hpp"

namespace rtmeter_dds {

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

inline std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : separator) + part;
  return all;
}

// The option's value, one of the choices.
inline std::string choose(const rtm_run& run, const char* option, const std::vector<std::string>& choices,
                          const std::string& otherwise) {
  std::string value = rtmeter::option_or(run, option, otherwise.c_str());
  if (std::find(choices.begin(), choices.end(), value) == choices.end())
    throw rtmeter::SetupError(std::string("option ") + option, value, "no such choice",
                              "choose one of " + joined(choices, ", "));
  return value;
}

// Lease of a writer's liveliness where Dust DDS may be the reader. Dust DDS 0.16 takes another
// implementation's infinite duration for a finite one, and compares leases the wrong way round: only equal
// and finite ones match for both. An hour adds next to no traffic.
constexpr std::int32_t kLeaseS = 3600;

struct Interface {
  std::string name, address;
  bool multicast = false;
};

// The IPv4 interface of this machine that is given by name or by address.
inline Interface interface_of(const std::string& given) {
  ifaddrs* all = nullptr;
  getifaddrs(&all);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, &freeifaddrs);
  std::vector<std::string> known;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    char address[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, address,
              sizeof address);
    // The loopback interface does not say so, but it can do multicast.
    if (given == one->ifa_name || given == address)
      return {one->ifa_name, address, (one->ifa_flags & (IFF_MULTICAST | IFF_LOOPBACK)) != 0};
    known.push_back(one->ifa_name);
  }
  throw rtmeter::SetupError("option interface", given, "this machine has no such IPv4 interface",
                            "choose one of " + joined(known, ", ") + ", or an address of theirs");
}

// Domains 1 to 100: 0 is everybody's, and above that ports would reach into those of clients.
inline std::uint32_t domain_of(const rtm_run& run) {
  const std::string given = rtmeter::option_or(run, "domain", "");
  if (given.empty()) {
    std::uint32_t hash = 2166136261U;  // FNV-1a: both ends, whatever implementation, agree
    for (const char* c = run.session; *c != '\0'; ++c)
      hash = (hash ^ static_cast<unsigned char>(*c)) * 16777619U;
    return hash % 100 + 1;
  }
  char* end = nullptr;
  const unsigned long domain = std::strtoul(given.c_str(), &end, 10);
  if (*end != '\0' || given.front() < '0' || given.front() > '9' || domain > 232)
    throw rtmeter::SetupError("option domain", given, "is no DDS domain", "give a number from 0 to 232");
  return static_cast<std::uint32_t>(domain);
}

// What the implementations differ in.
struct Implementation {
  std::vector<std::string> transports, networkless;  // networkless: those that use no interface of ours
  std::string settings_name;                         // variable or file that has the user's settings
  std::string settings;                              // its value; empty: none
  std::vector<std::string> lacks = {};               // options that it does not have: loan, peers
};

inline bool contains(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// The variable of the environment, or nothing.
inline std::string setting(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

// The options that every DDS adapter has, as the run gave them.
struct Options {
  Options(const rtm_run& run, const Implementation& of)
      : settings_name(of.settings_name), settings(of.settings),
        transport(choose(run, "transport", of.transports, settings.empty() ? "udp" : "vendor")),
        listener(run.receive == RTM_RECEIVE_LISTENER),
        loan(!contains(of.lacks, "loan") && choose(run, "loan", {"no", "yes"}, "no") == "yes"),
        domain(domain_of(run)) {
    const std::string given = rtmeter::option_or(run, "interface", "lo");
    if (!contains(of.networkless, transport)) interface = interface_of(given);
    if (!contains(of.lacks, "peers"))
      peers = split(rtmeter::option_or(run, "peers", interface.address.c_str()), ',');
    else if (!interface.name.empty() && !interface.multicast)
      throw rtmeter::SetupError("option interface", interface.name,
                                "it does no multicast, by which alone this implementation finds others",
                                "switch it on (ip link set " + interface.name +
                                    " multicast on), or choose another interface or adapter");
  }

  static void describe(rtmeter::Sink& sink, const std::vector<std::string>& lacks = {}) {
    for (const char* way : {"spin", "spin_once", "listener", "poll"}) sink.put("receives.roundtrip", way);
    for (const char* way : {"spin_once", "listener", "poll"}) sink.put("receives.cycle", way);
    if (!contains(lacks, "loan"))
      sink.put("option.loan", "no|yes: write into memory that the middleware lends (see the adapter's page)");
    sink.put("option.domain", "0 to 232; by default one of 1 to 100 that follows from the session");
    sink.put("option.interface", "name or address of the network interface, lo by default");
    if (!contains(lacks, "peers"))
      sink.put("option.peers",
               "addresses, separated by commas, where others are looked for besides multicast; by default "
               "the interface's own");
  }

  void describe_effect(rtmeter::Sink& sink) const {
    sink.put("domain", std::to_string(domain)).put("transport", transport);
    sink.put("loan", loan ? "yes" : "no");
    if (!interface.address.empty()) sink.put("interface", interface.name + " (" + interface.address + ")");
    if (!settings.empty()) sink.put(settings_name, settings);
  }

  // Where the run looks for its other end, and what may keep it from being heard.
  std::string whereabouts(std::uint32_t payload_bytes) const {
    std::string where = "domain " + std::to_string(domain) + ", transport " + transport;
    if (interface.address.empty()) return where;
    where += " on " + interface.name + ", multicast";
    if (!peers.empty()) where += " and " + joined(peers, ", ");
    std::uint64_t buffer_bytes = UINT64_MAX;
    std::ifstream("/proc/sys/net/core/rmem_max") >> buffer_bytes;
    if (transport == "udp" && payload_bytes > buffer_bytes)
      where += " (a payload of " + std::to_string(payload_bytes) +
               " bytes is more than a socket's receive buffer may hold, net.core.rmem_max = " +
               std::to_string(buffer_bytes) + ")";
    return where;
  }

  std::string settings_name, settings;  // the user's
  std::string transport;
  bool listener, loan;
  std::uint32_t domain;
  Interface interface;  // empty: the transport uses none of ours
  std::vector<std::string> peers;
};

// Nobody else's topic has this name. Names consist of letters, digits, _ and /: what else the session has
// is written in hexadecimal.
inline std::string topic_name(const rtm_run& run, const std::string& topic) {
  std::string name = "rtmeter/";
  for (const char* c = run.session; *c != '\0'; ++c) {
    const auto byte = static_cast<unsigned char>(*c);
    const bool plain =
        (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    char text[4] = {*c, '\0'};
    if (!plain) std::snprintf(text, sizeof text, "_%02x", byte);
    name += text;
  }
  return name + "/" + topic;
}

}  // namespace rtmeter_dds
