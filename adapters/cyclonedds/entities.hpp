// Cyclone DDS entities as the adapter uses them: types, quality of service, writers, readers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../common/dds/options.hpp"
#include "dds/dds.h"
#include "dds/ddsc/dds_loan_api.h"
#include "domain.hpp"
#include "message.h"

namespace rtmeter_cyclonedds {

// The type that the run's topics have: Message, or with loans the smallest block that holds the payload.
class Types {
 public:
  Types(const rtm_run& run, const rtmeter_dds::Options& options);
  bool loan() const noexcept { return descriptor_ != &rtmeter_dds_Message_desc; }
  const dds_topic_descriptor_t* descriptor() const noexcept { return descriptor_; }
  std::string name() const { return descriptor_->m_typename; }
  // Of the largest payload to come.
  std::uint32_t payload_bytes() const noexcept { return payload_bytes_; }

 private:
  const dds_topic_descriptor_t* descriptor_ = &rtmeter_dds_Message_desc;
  std::uint32_t payload_bytes_;
};

class Writer {
 public:
  Writer(const Types& types, dds_entity_t entity) : loan_(types.loan()), entity_(entity) {}
  // Measured path.
  int write(const rtm_message& message) noexcept;

 private:
  bool loan_;
  dds_entity_t entity_;
};

class Reader {
 public:
  Reader(const Types& types, rtm_on_message on_message, void* user);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  // Calls back for the next sample, or all there are; the number of callbacks. Measured path.
  int take() noexcept;
  int take_all() noexcept;

  dds_entity_t entity = 0;

 private:
  rtm_on_message on_message_;
  void* user_;
  std::vector<std::uint64_t> memory_;  // what samples are taken into, so that taking allocates nothing
  rtmeter_dds_Message message_{};      // its payload lies there, unless the type is a block
  void* sample_;
};

class Qos {
 public:
  Qos() = default;
  Qos(const rtm_run& run, const rtmeter_dds::Options& options, bool of_writer);
  Qos(const Qos&) = delete;
  Qos& operator=(const Qos&) = delete;
  ~Qos() { dds_delete_qos(qos_); }
  dds_qos_t* get() const noexcept { return qos_; }

 private:
  dds_qos_t* qos_ = dds_create_qos();
};

// One end of a topic.
struct End {
  std::string topic;
  dds_entity_t entity;
  bool is_writer;
};

// Quality of service as the entities have it, whom they found, and which policies do not match.
void describe_ends(rtmeter::Sink& sink, const std::vector<End>& ends, dds_entity_t participant,
                   const std::string& scope);

}  // namespace rtmeter_cyclonedds
