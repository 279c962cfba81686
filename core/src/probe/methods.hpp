// Which methods of the contract each measurement calls, and whether an adapter has those of what it lists.
#pragma once

#include <string>
#include <vector>

#include "json/json.hpp"
#include "rtmeter/adapter.h"

namespace rtmeter {

// One way to measure, by the names that describe() lists.
struct WayToMeasure {
  std::string measure;  // such as timer.one_shot
  std::string drive;    // "" where there is none
  std::string receive;  // likewise
};

// Every way that a description lists; what it leaves out is the contract's default.
std::vector<WayToMeasure> ways_of(const Json& description);

// Methods that the core calls in it, besides start, describe and stop; in the order in which they first come.
std::vector<std::string> methods_of(const WayToMeasure& way);

// Throws Failure naming a list, an entry and the methods that it needs and that the adapter's table lacks.
void require_methods(const rtm_adapter& adapter, const Json& description);

// --describe: one JSON object on standard output, or what is wrong on standard error; the exit code.
int print_description(const rtm_adapter& adapter);

}  // namespace rtmeter
