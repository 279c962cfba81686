// What the DDS adapters have in common: their options.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../receive_buffer.hpp"
#include "../session.hpp"
#include "../text.hpp"
#include "../threads.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_dds {

// The policy of the id that the DDS standard gives it; empty for 0, none.
inline std::string policy_name(std::uint32_t id) {
  static const char* const names[] = {"",
                                      "user_data",
                                      "durability",
                                      "presentation",
                                      "deadline",
                                      "latency_budget",
                                      "ownership",
                                      "ownership_strength",
                                      "liveliness",
                                      "time_based_filter",
                                      "partition",
                                      "reliability",
                                      "destination_order",
                                      "history"};
  return id < sizeof names / sizeof names[0] ? names[id] : "policy " + std::to_string(id);
}

// Lease of liveliness with option interoperable, where the other end may be Dust DDS. Dust DDS 0.16 takes
// another implementation's infinite duration for a finite one, and compares leases the wrong way round: only
// equal and finite ones match for both. An hour adds next to no traffic.
constexpr std::int32_t kLeaseS = 3600;

struct Interface {
  std::string name, address;
  bool multicast = false;
};

// The IPv4 interface of this machine that is given by name or by address.
inline Interface interface_of(const std::string& given, const rtmeter::Option& option) {
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
  throw option.error(given, "this machine has no such IPv4 interface",
                     "choose one of " + rtmeter_common::joined(known, ", ") + ", or an address of theirs");
}

// Their declaration, in which the implementations differ by transports and meanings.
struct OptionSet : rtmeter::OptionSet {
  // lacks: options that the implementation has not: loan, peers.
  OptionSet(const std::vector<std::string>& transports, const std::string& transport_about,
            const std::string& threads_about, const std::vector<std::string>& lacks = {})
      : transport(*this, "transport", transports, transport_about), threads(*this, threads_about),
        has_loan(!rtmeter_common::contains(lacks, "loan")),
        has_peers(!rtmeter_common::contains(lacks, "peers")) {
    if (!has_loan) leave_out(loan);
    if (!has_peers) leave_out(peers);
  }

  rtmeter::Choice transport;
  rtmeter::Flag loan{*this, "loan", "write into memory that the middleware lends (see the adapter's page)"};
  rtmeter_common::DomainOption domain{*this};
  rtmeter::Text interface{*this, "interface", "name or address of the network interface, lo by default"};
  rtmeter::Text peers{*this, "peers",
                      "addresses, separated by commas, where others are looked for besides multicast; by "
                      "default the interface's own"};
  rtmeter::Flag interoperable{
      *this, "interoperable",
      "durations and types by which another implementation's ends match, Dust DDS's too; "
      "rtmeter gives it where the server's adapter is another"};
  rtmeter_common::ThreadsOption threads;
  const bool has_loan, has_peers;
};

// Whom they answer, options and ways to receive.
inline void describe(const OptionSet& options, rtmeter::Sink& sink) {
  sink.put("wire", "dds");
  for (const char* way : {"spin", "spin_once", "listener", "poll"}) sink.put("receives.roundtrip", way);
  for (const char* way : {"spin_once", "listener", "poll"}) sink.put("receives.cycle", way);
  options.describe(sink);
}

// The user's own settings of the implementation.
struct UserSettings {
  std::string name;  // of the variable or file that has them
  std::string text;  // its value; empty: none
};

// What the adapters of C++ implementations measure, and how.
inline void describe_measurements(rtmeter::Sink& sink) {
  for (const char* what : {"wakeup", "roundtrip", "cycle", "chain", "discovery"}) sink.put("measures", what);
  for (const char* what : {"receives.chain", "receives.discovery"}) sink.put(what, "spin_once");
  for (const char* end : {"publisher", "subscriber"}) sink.put("matches", end);
  for (const char* drive : {"sleep_then_spin_some", "poll"}) sink.put("drives.cycle", drive);
  sink.put("components", "one_thread");
  for (const char* place : {"same_node", "same_process"}) sink.put("second_topic", place);
  for (const char* what : {"subscribers", "publishers", "background_nodes"}) sink.put("beside", what);
  sink.put("background", "roundtrip");
}

// The options as the run gave them.
struct Options {
  // networkless: transports that use no interface of ours.
  Options(const rtm_run& run, const OptionSet& set, const std::vector<std::string>& networkless,
          const UserSettings& of_user = {})
      : settings_name(of_user.name), settings(of_user.text),
        transport(set.transport.given(run) || settings.empty() ? set.transport.of(run) : "vendor"),
        listener(run.receive == RTM_RECEIVE_LISTENER), loan(set.has_loan && set.loan.of(run)),
        interoperable(set.interoperable.of(run)), domain(set.domain.of(run)),
        domain_given(set.domain.given(run)) {
    if (rtmeter_common::contains(networkless, transport)) return;
    interface = interface_of(set.interface.of(run, "lo"), set.interface);
    if (set.has_peers)
      peers = rtmeter_common::split(set.peers.of(run, interface.address), ',');
    else if (!interface.multicast)
      throw set.interface.error(interface.name,
                                "it does no multicast, by which alone this implementation finds others",
                                "switch it on (ip link set " + interface.name +
                                    " multicast on), or choose another interface or adapter");
  }

  void describe_effect(rtmeter::Sink& sink) const {
    if (domain_given)
      sink.put("domain", std::to_string(domain));
    else
      sink.put_chosen("domain", std::to_string(domain));
    sink.put("transport", transport);
    sink.put("loan", loan ? "yes" : "no").put("interoperable", interoperable ? "yes" : "no");
    if (!interface.address.empty()) sink.put("interface", interface.name + " (" + interface.address + ")");
    if (!settings.empty()) sink.put(settings_name, settings);
  }

  // Where the run looks for its other end, and what may keep it from being heard.
  std::string discovery_scope(std::uint32_t payload_bytes) const {
    std::string where = "domain " + std::to_string(domain) + ", transport " + transport;
    if (interface.address.empty()) return where;
    where += " on " + interface.name + ", multicast";
    if (!peers.empty()) where += " and " + rtmeter_common::joined(peers, ", ");
    return transport == "udp" ? where + rtmeter_common::too_large_to_receive(payload_bytes) : where;
  }

  std::string settings_name, settings;  // the user's
  std::string transport;
  bool listener, loan, interoperable;
  std::uint32_t domain;
  bool domain_given;
  Interface interface;  // empty: the transport uses none of ours
  std::vector<std::string> peers;
};

}  // namespace rtmeter_dds
