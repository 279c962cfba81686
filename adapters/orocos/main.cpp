#include "orocos.hpp"

RTMETER_ADAPTER_MAIN(rtmeter_orocos::Orocos)
