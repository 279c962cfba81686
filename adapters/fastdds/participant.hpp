// A Fast DDS participant with its settings: the user's profiles, and what the run's options ask for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <string>

#include "../common/dds/options.hpp"
#include "api.hpp"

namespace rtmeter_fastdds {

// The user's profiles: what names them, and the file; empty: there are none.
rtmeter_dds::UserSettings profiles();

// Loads them; without any, discovery goes by messages within a process too. Throws SetupError with Fast DDS's
// own words if something is wrong with them.
void load_profiles();

// What Fast DDS hands over within a process without a transport: full (discovery too), user_data_only, off.
std::string delivery_within_process();

// A participant and all that belongs to it.
class Participant : private ParticipantListener {
 public:
  Participant(const rtmeter_dds::Options& options, const rtm_run& run);
  ~Participant() override;
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  dds::DomainParticipant* get() const noexcept { return participant_; }
  // Other participants known.
  int others() const noexcept { return others_.load(); }

 private:
  void on_discovery(DiscoveryStatus status) override;

  std::atomic<int> others_{0};
  dds::DomainParticipant* participant_;
};

}  // namespace rtmeter_fastdds
