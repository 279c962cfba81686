// Compiled as one: most of what each costs is what its headers make (core/CMakeLists.txt, RTMETER_UNITY). It lies here,
// not in a build folder, so that a compiler's cache knows it again.
// Left out: measure_request and measure_roundtrip, which both have a `Client` of their own.
#include "measure/config.cpp"
#include "measure/measure_beside.cpp"
#include "measure/measure_chain.cpp"
#include "measure/measure_cycle.cpp"
#include "measure/measure_discovery.cpp"
#include "measure/measure_one_shot.cpp"
#include "measure/measure_periodic.cpp"
#include "measure/measure_wakeup.cpp"
#include "measure/measurement.cpp"
#include "measure/periodic_timer.cpp"
#include "measure/second_topic.cpp"
#include "measure/session.cpp"
