// The options of the OROCOS adapter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rtt/ConnPolicy.hpp>

#include "../common/threads.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_orocos {

struct Options : rtmeter::OptionSet {
  rtmeter::Choice activity{*this,
                           "activity",
                           {"Activity", "PeriodicActivity", "SlaveActivity"},
                           "what runs the component: with drive spin one of the first two, with "
                           "sleep_then_spin_some a SlaveActivity"};
  rtmeter::ChoiceOf<bool> relative_wait{*this,
                                        "wait",
                                        {{"absolute", false}, {"relative", true}},
                                        "ORO_WAIT_ABS or ORO_WAIT_REL, with drive spin"};
  rtmeter::Choice connection{
      *this, "connection", {"data", "buffer", "circular_buffer"}, "the connections of a cycle"};
  rtmeter::ChoiceOf<int> lock{*this,
                              "lock",
                              {{"lock_free", RTT::ConnPolicy::LOCK_FREE},
                               {"locked", RTT::ConnPolicy::LOCKED},
                               {"unsync", RTT::ConnPolicy::UNSYNC}},
                              "their locking policy; unsync with one_thread only"};
  rtmeter_common::ThreadsOption threads{
      *this,
      "policy and priority of RTT's threads, e.g. fifo:75, or orocos-a=fifo:75,orocos-b=rr:70; by default "
      "those of the thread that creates them"};
  rtmeter::Text cpus{*this, "cpus", "CPU of RTT's threads, e.g. 1, or orocos-a=0,orocos-b=1"};
};

inline const Options kOptions;

}  // namespace rtmeter_orocos
