# Asks a probe that was just built what it is: one that lists what it has no method for is refused here, and not
# when it is to measure. What keeps it from starting at all (a library, its middleware's surroundings) is left to
# `rtmeter adapters`, which says it.
#
#   cmake -D PROBE=file -P RtmeterDescribe.cmake

execute_process(COMMAND ${PROBE} --describe OUTPUT_QUIET ERROR_VARIABLE words RESULT_VARIABLE result)
if(result EQUAL 1 AND words MATCHES "which this adapter does not have")
  string(STRIP "${words}" words)
  message(FATAL_ERROR "${words}")
endif()
