// The options of the null adapter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rtmeter/adapter.hpp"

namespace rtmeter::null {

struct Options : OptionSet {
  Text script{*this, "script", "path of the script, a CSV file; by default nothing is delayed"};
  ChoiceOf<bool> reports{
      *this, "report", {{"monotonic", true}, {"none", false}}, "what a timer callback is told of its times"};
  Choice ticks{*this,
               "ticks",
               {"every_tick", "jumps"},
               "what is declared of a periodic timer that reports nothing; by default jumps if it skips"};
  ChoiceOf<bool> relative{*this,
                          "rearm",
                          {{"grid", false}, {"relative", true}},
                          "a periodic timer waits for its own grid, or for a period after it last fired"};
  Number clock_rate_ppm{*this, "clock_rate", -500000, 500000,
                        "ppm, 0 by default: by how much a periodic timer's own clock is slow"};
};

inline const Options kOptions;

}  // namespace rtmeter::null
