#include "null.hpp"
#include "rtmeter/probe.hpp"

int main(int argc, char** argv) {
  return rtmeter::probe_main(argc, argv, rtmeter::null::adapter(), rtmeter::null::clock());
}
