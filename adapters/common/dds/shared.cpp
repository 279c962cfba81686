#include "shared.h"

#include <memory>
#include <string>
#include <vector>

#include "../ends.hpp"
#include "options.hpp"

using rtmeter_common::split;

namespace {

rtmeter_dds::OptionSet option_set(const rtm_dds_options& of) {
  return {split(of.transports, ','), of.transport_about, of.threads_about, split(of.lacks, ',')};
}

}  // namespace

struct rtm_dds {
  rtm_dds(const rtm_run& of, const rtmeter_dds::OptionSet& set, const std::vector<std::string>& networkless)
      : run(of), options(of, set, networkless), threads(of, set.threads) {}

  const rtm_run run;
  const rtmeter_dds::Options options;
  rtmeter_common::ThreadPlan threads;
  std::vector<rtmeter_common::EndFacts> ends;
  std::string topic;
};

void rtm_dds_describe_static(rtm_sink* sink, const rtm_dds_options* of) {
  rtmeter::Sink text(sink);
  rtmeter_dds::describe(option_set(*of), text);
}

int rtm_dds_open(const rtm_run* run, const rtm_dds_options* of, const char* networkless, rtm_dds** dds,
                 rtm_error* error) {
  return rtmeter::set_up(error, "adapter", "options", [&] {
    auto made = std::make_unique<rtm_dds>(*run, option_set(*of), split(networkless, ','));
    for (const auto& wanted : made->threads.wanted())
      if (!wanted.thread.empty() && rtmeter_common::contains(split(of->lacks, ','), "names"))
        throw made->threads.error("this implementation's threads cannot be told apart by their names",
                                  "give fifo:PRIORITY for all of them");
    *dds = made.release();
  });
}
void rtm_dds_close(rtm_dds* dds) { delete dds; }

int32_t rtm_dds_lease_s(const rtm_dds* dds) { return dds->options.interoperable ? rtmeter_dds::kLeaseS : 0; }

const char* rtm_dds_interface_name(const rtm_dds* dds) { return dds->options.interface.name.c_str(); }
const char* rtm_dds_interface_address(const rtm_dds* dds) { return dds->options.interface.address.c_str(); }
uint32_t rtm_dds_domain(const rtm_dds* dds) { return dds->options.domain; }
int rtm_dds_listener(const rtm_dds* dds) { return dds->options.listener; }
const char* rtm_dds_topic_name(rtm_dds* dds, const char* topic) {
  dds->topic = rtmeter_common::topic_name(dds->run, topic);
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
  rtmeter_common::describe_ends(text, dds->ends, other_participants,
                                dds->options.discovery_scope(dds->run.payload_bytes));
  dds->ends.clear();
}
