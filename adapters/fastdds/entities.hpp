// Fast DDS entities as the adapter uses them: types, writers, readers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <string>

#include "../common/dds/options.hpp"
#include "../common/ends.hpp"
#include "message.h"
#include "participant.hpp"

namespace rtmeter_fastdds {

// How the run writes and reads: quality of service, and with loans a type of fixed size.
struct EndpointSettings {
  EndpointSettings(const rtm_run& run, const rtmeter_dds::Options& options);
  // The user's profile with the run's settings over it; for both kinds of endpoint.
  template <typename EndpointQos>
  EndpointQos applied_to(EndpointQos qos) const;

  bool loan, listener;
  std::string transport;
  dds::ReliabilityQosPolicyKind reliability;
  std::int32_t depth;
  std::uint32_t payload_bytes;
  dds::TypeSupport type;  // Message, or with loans the smallest block that holds the payload
};

class Writer {
 public:
  Writer(const EndpointSettings& settings, dds::Publisher* publisher, dds::Topic* topic,
         const std::string& name);
  // Measured path; may throw what Fast DDS throws.
  int write(const rtm_message& message);
  rtmeter_common::EndFacts facts() const;

 private:
  const bool loan_;
  const std::string name_;
  rtmeter_dds::Message message_;
  dds::DataWriter* writer_;
};

class Reader : private dds::DataReaderListener {
 public:
  Reader(const EndpointSettings& settings, dds::Subscriber* subscriber, dds::Topic* topic,
         const std::string& name, rtm_on_message on_message, void* user);
  // Calls back for every sample there is; the number of samples. Measured path; may throw what Fast DDS
  // throws.
  int take_all();
  dds::StatusCondition& condition() { return reader_->get_statuscondition(); }
  rtmeter_common::EndFacts facts() const;

 private:
  bool take();  // false: there was none
  bool take_lent();
  void on_data_available(dds::DataReader* reader) override;

  const bool loan_;
  const std::string name_;
  const rtm_on_message on_message_;
  void* const user_;
  rtmeter_dds::Message message_;
  dds::DataReader* reader_;
};

}  // namespace rtmeter_fastdds
