// RTT's activities: which threads they bring, how those run, and what the system says of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <rtt/Activity.hpp>
#include <rtt/extras/PeriodicActivity.hpp>
#include <rtt/extras/SlaveActivity.hpp>
#include <set>
#include <string>

#include "../common/threads.hpp"
#include "rtmeter/adapter.hpp"
#include "rtmeter/event_count.hpp"

namespace rtmeter_orocos {

// No thread: whoever executes it is told when there is something to do.
class Slave final : public RTT::extras::SlaveActivity {
 public:
  explicit Slave(rtmeter::ThreadEventCount& called) : called_(called) {}
  bool trigger() override {
    called_.notify();
    return true;
  }

 private:
  rtmeter::ThreadEventCount& called_;
};

// Makes the activities with threads. Policy and priority are those of the thread that creates them, or what
// option threads says; CPUs too, or what option cpus says. All of it goes through RTT's own means, is read
// back from the system, and is an error if it did not take.
class Activities {
 public:
  explicit Activities(const rtm_run& run);

  // A thread of its own; period_ns 0: it waits to be triggered.
  RTT::Activity* make(const std::string& name, std::int64_t period_ns, bool relative_wait);
  // RTT's thread for all that has this period.
  RTT::extras::PeriodicActivity* make_periodic(std::int64_t period_ns, bool relative_wait);

  // Once all are made: threads that options threads and cpus name must be there.
  void enforce();
  void describe(rtmeter::Sink& sink) const { plan_.describe(sink); }

 private:
  struct Settings {
    int policy, priority;
    unsigned cpus;  // a mask; 0: those of the creating thread
  };
  Settings settings_of(const std::string& thread);
  unsigned cpus_of(const std::string& thread) const;
  void apply(RTT::os::ThreadInterface& thread, const Settings& wanted, bool relative_wait) const;

  rtmeter_common::ThreadPlan plan_;
  const std::string cpus_;
  std::set<std::string> made_;  // threads, by name
};

// An activity as RTT describes it: kind, period, and its thread with policy, priority and CPUs.
std::string in_words(RTT::base::ActivityInterface& activity);

}  // namespace rtmeter_orocos
