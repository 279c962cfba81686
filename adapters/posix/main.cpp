#include "posix.hpp"

RTMETER_ADAPTER_MAIN(rtmeter_posix::Posix)
