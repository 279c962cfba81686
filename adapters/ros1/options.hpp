// The options of the ROS 1 adapter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rtmeter/adapter.hpp"

namespace rtmeter_ros1 {

struct Options : rtmeter::OptionSet {
  rtmeter::Choice timer{*this, "timer", {"Timer", "SteadyTimer", "WallTimer"}, "which of roscpp's timers"};
  rtmeter::Choice spinner{
      *this,
      "spinner",
      {"single", "async", "multi_threaded"},
      "ros::spin() or its loop; a thread of an AsyncSpinner calls back (of messages that is receive listener); "
      "a MultiThreadedSpinner (receive spin)"};
  rtmeter::Number spinner_threads{*this, "spinner_threads", 0, 1024,
                                  "of spinner=multi_threaded; 0, the default: one a CPU"};
  rtmeter::Choice transport{
      *this, "transport", {"tcp", "tcp_nodelay", "udp"}, "TCPROS, the same with TCP_NODELAY, or UDPROS"};
  rtmeter::ChoiceOf<bool> persistent{
      *this,
      "persistent",
      {{"no", false}, {"yes", true}},
      "whether a client of a service keeps its connection; else each call asks the master and connects"};
  rtmeter::Text interface{
      *this, "interface",
      "IPv4 address of this end that the other reaches, by default as ROS_IP and ROS_HOSTNAME say"};
  rtmeter::Text endpoint{
      *this, "endpoint",
      "client, or who is beside it: the URI of the master, as the server's ready line gives it"};
};

inline const Options kOptions;

}  // namespace rtmeter_ros1
