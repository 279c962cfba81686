// Fast DDS entities as the adapter uses them: types, writers, readers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fastdds/dds/core/condition/GuardCondition.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <string>

#include "../common/dds/options.hpp"
#include "../common/ends.hpp"
#include "messagePubSubTypes.h"
#include "participant.hpp"

namespace rtmeter_fastdds {

// How the run writes and reads: quality of service, and with loans a type of fixed size.
struct EndpointSettings {
  EndpointSettings(const rtm_run& run, const rtmeter_dds::Options& options);
  // The user's profile with the run's settings over it; for both kinds of endpoint.
  template <typename EndpointQos>
  EndpointQos applied_to(EndpointQos qos) const;

  bool loan, listener, interoperable;
  std::string transport;
  dds::ReliabilityQosPolicyKind reliability;
  std::int32_t depth;
  std::uint32_t payload_bytes;
  dds::TypeSupport type;  // Message, or with loans the smallest block that holds the payload
};

// Whom a discovery tells of matches; null elsewhere. Fast DDS's threads call it.
struct Watcher {
  rtm_on_match on_match = nullptr;
  void* user = nullptr;
  dds::GuardCondition* wake = nullptr;

  // own: how many of the ends that are matched are this participant's.
  void tell(rtm_end end, std::int32_t matched, int own) const;
};

class Writer : private dds::DataWriterListener {
 public:
  Writer(const EndpointSettings& settings, dds::Publisher* publisher, dds::Topic* topic,
         const std::string& name, const Watcher& watcher);
  // Measured path; may throw what Fast DDS throws.
  int write(const rtm_message& message);
  rtmeter_common::EndFacts facts() const;

 private:
  void on_publication_matched(dds::DataWriter* writer, const dds::PublicationMatchedStatus& status) override;

  const bool loan_;
  const std::string name_;
  const Watcher watcher_;
  int own_ = 0;  // matched ends of this participant's; Fast DDS's threads, one at a time
  rtmeter_dds::Message message_;
  dds::DataWriter* writer_;
};

class Reader : private dds::DataReaderListener {
 public:
  Reader(const EndpointSettings& settings, dds::Subscriber* subscriber, dds::Topic* topic,
         const std::string& name, rtm_on_message on_message, void* user, const Watcher& watcher);
  // Calls back for every sample there is; the number of samples. Measured path; may throw what Fast DDS
  // throws.
  int take_all();
  dds::StatusCondition& condition() { return reader_->get_statuscondition(); }
  rtmeter_common::EndFacts facts() const;

 private:
  bool take();  // false: there was none
  bool take_lent();
  void on_data_available(dds::DataReader* reader) override;
  void on_subscription_matched(dds::DataReader* reader,
                               const dds::SubscriptionMatchedStatus& status) override;

  const bool loan_;
  const std::string name_;
  const Watcher watcher_;
  int own_ = 0;
  const rtm_on_message on_message_;
  void* const user_;
  rtmeter_dds::Message message_;
  dds::DataReader* reader_;
};

}  // namespace rtmeter_fastdds
