// What the contract says of wait, spin, spin_some and interrupt, tried call by call on a started adapter to
// which nothing comes (rtmeter check-adapter). SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/measurement.hpp"
#include "probe/status.hpp"

namespace rtmeter {

// Writes a status line as each trial begins, and one with what came of it. A trial that begins and has no
// outcome hangs in the adapter.
void try_calls(Bench& bench, StatusOut& out);

}  // namespace rtmeter
