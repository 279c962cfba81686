#include "shared.h"

#include <memory>
#include <string>
#include <vector>

#include "describe.hpp"
#include "options.hpp"
#include "threads.hpp"

using rtmeter_dds::EndFacts;
using rtmeter_dds::Implementation;
using rtmeter_dds::split;

struct rtm_dds {
  rtm_dds(const rtm_run& of, const Implementation& implementation)
      : run(of), options(of, implementation), threads(of) {}

  const rtm_run run;
  const rtmeter_dds::Options options;
  rtmeter_dds::ThreadPlan threads;
  std::vector<EndFacts> ends;
  std::string topic;
};

void rtm_dds_describe_static(rtm_sink* sink, const char* lacks) {
  rtmeter::Sink text(sink);
  rtmeter_dds::Options::describe(text, split(lacks, ','));
}

int rtm_dds_open(const rtm_run* run, const char* transports, const char* networkless, const char* lacks,
                 rtm_dds** dds, rtm_error* error) {
  return rtmeter::set_up(error, "adapter", "options", [&] {
    const Implementation implementation{split(transports, ','), split(networkless, ','), "", "",
                                        split(lacks, ',')};
    auto made = std::make_unique<rtm_dds>(*run, implementation);
    for (const auto& wanted : made->threads.wanted())
      if (!wanted.thread.empty() && rtmeter_dds::contains(implementation.lacks, "names"))
        throw made->threads.error("this implementation's threads cannot be told apart by their names",
                                  "give fifo:PRIORITY for all of them");
    *dds = made.release();
  });
}
void rtm_dds_close(rtm_dds* dds) { delete dds; }

int32_t rtm_dds_lease_s() { return rtmeter_dds::kLeaseS; }

const char* rtm_dds_interface_name(const rtm_dds* dds) { return dds->options.interface.name.c_str(); }
const char* rtm_dds_interface_address(const rtm_dds* dds) { return dds->options.interface.address.c_str(); }
uint32_t rtm_dds_domain(const rtm_dds* dds) { return dds->options.domain; }
int rtm_dds_listener(const rtm_dds* dds) { return dds->options.listener; }
const char* rtm_dds_topic_name(rtm_dds* dds, const char* topic) {
  dds->topic = rtmeter_dds::topic_name(dds->run, topic);
  return dds->topic.c_str();
}

int rtm_dds_enforce_threads(rtm_dds* dds, rtm_error* error) {
  return rtmeter::set_up(error, "adapter", "threads", [&] {
    dds->threads.await_names(0);
    dds->threads.enforce();
  });
}

void rtm_dds_add_end(rtm_dds* dds, const char* name) {
  dds->ends.emplace_back();
  dds->ends.back().name = name;
}
void rtm_dds_add_policy(rtm_dds* dds, const char* policy, const char* value) {
  dds->ends.back().policies[policy] = value;
}
void rtm_dds_add_matches(rtm_dds* dds, size_t matched, uint32_t incompatible_policy) {
  dds->ends.back().matched = matched;
  dds->ends.back().incompatible = rtmeter_dds::policy_name(incompatible_policy);
}

void rtm_dds_describe(rtm_dds* dds, int other_participants, rtm_sink* sink) {
  rtmeter::Sink text(sink);
  dds->options.describe_effect(text);
  dds->threads.describe(text);
  rtmeter_dds::describe_ends(text, dds->ends, other_participants,
                             dds->options.whereabouts(dds->run.payload_bytes));
  dds->ends.clear();
}
