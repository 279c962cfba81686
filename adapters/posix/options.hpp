// The options of the posix adapter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "messaging.hpp"
#include "rtmeter/adapter.hpp"
#include "streams.hpp"
#include "timer.hpp"

namespace rtmeter_posix {

using MakeTimer = std::unique_ptr<Timer> (*)();
using MakeMessaging = std::unique_ptr<Messaging> (*)(const rtm_run& run);

struct Options : rtmeter::OptionSet {
  rtmeter::ChoiceOf<MakeTimer> timer{*this,
                                     "timer",
                                     {{"clock_nanosleep", &make_clock_nanosleep_timer},
                                      {"timerfd", &make_timerfd_timer},
                                      {"posix", &make_posix_timer}},
                                     "the system calls that the timer is made of"};
  rtmeter::ChoiceOf<MakeMessaging> transport{*this,
                                             "transport",
                                             {{"udp", &make_udp},
                                              {"unix", &make_unix},
                                              {"shm_futex", &make_shared_memory_with_futex},
                                              {"shm_poll", &make_shared_memory_with_polling},
                                              {"topics", &make_topics}},
                                             "what carries a round trip (shm_poll needs a CPU for each end; "
                                             "topics: Unix datagrams, a copy to each subscriber)"};
  rtmeter::ChoiceOf<MakeStream> stream{*this,
                                       "stream",
                                       {{"unix", &make_unix_stream}, {"tcp", &make_tcp_stream}},
                                       "what carries requests: a Unix socket's stream, or TCP_NODELAY"};
  rtmeter::Text address{
      *this, "address",
      "udp, tcp: IP[:port] where the server listens, 127.0.0.1 and a free port by default; unix: its path or "
      "@name, @rtmeter-SESSION by default"};
  rtmeter::Number dscp{*this, "dscp", 0, 63,
                       "udp: the field DSCP of what is sent, for switches that heed it; 46 is expedited "
                       "forwarding"};
  rtmeter::Number priority{*this, "priority", 0, 15,
                           "udp: SO_PRIORITY of what is sent, for this machine's qdiscs"};
  rtmeter::Text endpoint{*this, "endpoint",
                         "client: the server's endpoint, as the server's ready line gives it"};
};

inline const Options kOptions;

}  // namespace rtmeter_posix
