// Compiled as one: most of what each costs is what its headers make (core/CMakeLists.txt, RTMETER_UNITY). It lies here,
// not in a build folder, so that a compiler's cache knows it again.
#include "probe/check_threads.cpp"
#include "probe/effective.cpp"
#include "probe/instrument.cpp"
#include "probe/log_header.cpp"
#include "probe/methods.cpp"
#include "probe/oversight.cpp"
#include "probe/polling.cpp"
#include "probe/probe.cpp"
#include "probe/status.cpp"
#include "probe/supervisor.cpp"
#include "probe/trials.cpp"
