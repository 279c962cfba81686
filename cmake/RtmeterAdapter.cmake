# rtmeter_add_adapter(): one call makes a probe of an adapter's sources. It works in three places: in
# rtmeter's own build, in an adapter's folder built alone (it then builds the core beside it), and in a
# project of its own after find_package(rtmeter).

include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/RtmeterTests.cmake)
foreach(part Sourced AdapterTable Try)  # of the source tree
  include(${CMAKE_CURRENT_LIST_DIR}/Rtmeter${part}.cmake OPTIONAL)
endforeach()

# rtmeter_add_adapter(NAME SOURCES file... [LIBRARIES library...] [TESTS file...])
#
# Makes the executable rtmeter-probe-NAME, part of target rtmeter_probes, and installs it where
# `rtmeter` looks for probes. With RTMETER_TESTS each of TESTS becomes a GoogleTest program that has all
# SOURCES but main.cpp.
function(rtmeter_add_adapter NAME)
  cmake_parse_arguments(PARSE_ARGV 1 adapter "" "" "SOURCES;LIBRARIES;TESTS")
  if(adapter_UNPARSED_ARGUMENTS OR NOT adapter_SOURCES)
    message(FATAL_ERROR "rtmeter_add_adapter(${NAME} SOURCES file... [LIBRARIES library...] [TESTS file...])")
  endif()
  set(libraries rtmeter::core ${adapter_LIBRARIES})
  if(TARGET rtmeter_options)
    list(APPEND libraries rtmeter_options)
  endif()

  # A middleware that needs another standard sets the property again, on rtmeter-probe-NAME.
  set(standard CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)

  set(tested "")
  if(RTMETER_TESTS AND adapter_TESTS)  # what is measured is what is tested
    set(tested rtmeter_adapter_${NAME})
    set(sources ${adapter_SOURCES})
    list(FILTER sources EXCLUDE REGEX "(^|/)main\\.cpp$")
    list(FILTER adapter_SOURCES INCLUDE REGEX "(^|/)main\\.cpp$")
    add_library(${tested} OBJECT ${sources})
    set_target_properties(${tested} PROPERTIES ${standard})
    target_include_directories(${tested} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${tested} PUBLIC ${libraries})
  endif()

  set(probe rtmeter-probe-${NAME})
  add_executable(${probe} ${adapter_SOURCES})
  set_target_properties(${probe} PROPERTIES ${standard})
  target_link_libraries(${probe} PRIVATE ${tested} ${libraries})
  # Symbols are bound at start: binding one at its first call would show on the measured path.
  target_link_options(${probe} PRIVATE -Wl,-z,now)
  # Of C++ nothing is needed where it runs but the C library; a middleware brings the C++ library that it shares.
  if(RTMETER_PORTABLE AND NOT adapter_LIBRARIES)
    target_link_options(${probe} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  if(NOT CMAKE_CROSSCOMPILING)
    add_custom_command(
      TARGET ${probe} POST_BUILD
      COMMAND ${CMAKE_COMMAND} -D PROBE=$<TARGET_FILE:${probe}> -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/RtmeterDescribe.cmake
      VERBATIM)
  endif()
  install(TARGETS ${probe} RUNTIME DESTINATION ${RTMETER_PROBE_DIR} COMPONENT probes)
  if(NOT TARGET rtmeter_probes)
    add_custom_target(rtmeter_probes)
  endif()
  add_dependencies(rtmeter_probes ${probe})
  if(COMMAND rtmeter_adapter_found)
    rtmeter_adapter_found(${NAME})
  endif()

  if(tested)
    foreach(source IN LISTS adapter_TESTS)
      get_filename_component(test ${source} NAME_WE)
      rtmeter_add_test(${NAME}_${test} SOURCES ${source} LIBRARIES ${tested})
      if(adapter_LIBRARIES)  # whose headers may need this standard
        set_target_properties(${NAME}_${test} PROPERTIES ${standard} DISABLE_PRECOMPILE_HEADERS ON)
      endif()
    endforeach()
  endif()
endfunction()

if(NOT RTMETER_PROBE_DIR)
  set(RTMETER_PROBE_DIR lib/rtmeter)
endif()

# For an adapter's folder built alone: builds the core of the source tree that this file lies in.
function(rtmeter_add_core SOURCE_DIR)
  file(STRINGS ${SOURCE_DIR}/CMakeLists.txt line REGEX "^project\\(rtmeter VERSION")
  string(REGEX MATCH "[0-9]+(\\.[0-9]+)+" PROJECT_VERSION "${line}")
  set(RTMETER_TESTS OFF)  # the core's tests are the core's
  include(${SOURCE_DIR}/cmake/RtmeterOptions.cmake)
  add_subdirectory(${SOURCE_DIR}/core ${CMAKE_BINARY_DIR}/rtmeter-core)
endfunction()

get_filename_component(rtmeter_source_dir ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
if(NOT TARGET rtmeter::core AND EXISTS ${rtmeter_source_dir}/core/CMakeLists.txt)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release)
  endif()
  if(RTMETER_TESTS)
    enable_testing()
    include(GoogleTest)
    find_package(GTest REQUIRED)
  endif()
  rtmeter_add_core(${rtmeter_source_dir})
  cmake_language(DEFER CALL rtmeter_print_adapters)
endif()
