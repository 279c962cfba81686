# What configure tells about the adapters: which are built, and what each missing one needs.

# Notes that adapter NAME will be built.
function(rtmeter_adapter_found NAME)
  set_property(GLOBAL APPEND PROPERTY RTMETER_ADAPTER_ROWS "${NAME}|built|")
endfunction()

# Notes that adapter NAME is left out, and what must be installed for it.
function(rtmeter_adapter_missing NAME NEEDS)
  string(REPLACE ";" "," NEEDS "${NEEDS}")  # a list's separator
  set_property(GLOBAL APPEND PROPERTY RTMETER_ADAPTER_ROWS "${NAME}|not built|${NEEDS}")
endfunction()

# Prints the table, and leaves it in rtmeter-adapters.txt for `rtmeter adapters`. A probe of an earlier configure
# that is built no more is removed: it would go on measuring, with the core of then.
function(rtmeter_print_adapters)
  get_property(rows GLOBAL PROPERTY RTMETER_ADAPTER_ROWS)
  list(JOIN rows "\n" text)
  file(WRITE ${CMAKE_BINARY_DIR}/rtmeter-adapters.txt "${text}\n")
  file(GLOB probes ${CMAKE_BINARY_DIR}/adapters/*/rtmeter-probe-*)
  foreach(probe IN LISTS probes)
    string(REGEX REPLACE ".*/rtmeter-probe-" "" name "${probe}")
    if(NOT "${name}|built|" IN_LIST rows)
      file(REMOVE "${probe}")
    endif()
  endforeach()
  message(STATUS "Adapters:")
  foreach(row IN LISTS rows)
    string(REPLACE "|" ";" cells "${row}")
    list(GET cells 0 name)
    list(GET cells 1 state)
    list(GET cells 2 needs)
    string(SUBSTRING "${name}              " 0 14 name)
    string(SUBSTRING "${state}           " 0 11 state)
    message(STATUS "  ${name}${state}${needs}")
  endforeach()
endfunction()
