# How GoogleTest programs are built: they run once, so that what counts is how long they take to compile.
include_guard(GLOBAL)

# rtmeter_add_test(NAME SOURCES file... [LIBRARIES library...]): each of the program's tests is one of ctest's.
function(rtmeter_add_test NAME)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "" "SOURCES;LIBRARIES")
  add_executable(${NAME} ${test_SOURCES})
  rtmeter_is_test(${NAME})
  target_link_libraries(${NAME} PRIVATE ${test_LIBRARIES})
  gtest_discover_tests(${NAME} DISCOVERY_TIMEOUT 60)
  if(TARGET rtmeter_tests)
    add_dependencies(rtmeter_tests ${NAME})
  endif()
endfunction()

# rtmeter_is_test(TARGET): compiled as the tests are, with GoogleTest's header read once for all of them. Who needs
# another standard or other options disables that (DISABLE_PRECOMPILE_HEADERS).
function(rtmeter_is_test TARGET)
  if(NOT TARGET rtmeter_gtest)
    file(WRITE ${CMAKE_BINARY_DIR}/gtest.cpp "")
    add_library(rtmeter_gtest OBJECT ${CMAKE_BINARY_DIR}/gtest.cpp)
    rtmeter_compile_as_test(rtmeter_gtest)
    target_precompile_headers(rtmeter_gtest PRIVATE <gtest/gtest.h>)
  endif()
  rtmeter_compile_as_test(${TARGET})
  target_precompile_headers(${TARGET} REUSE_FROM rtmeter_gtest)
endfunction()

function(rtmeter_compile_as_test TARGET)
  set_target_properties(${TARGET} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
  target_compile_options(${TARGET} PRIVATE -O0)
  target_compile_definitions(${TARGET} PRIVATE $<$<BOOL:${CMAKE_CROSSCOMPILING_EMULATOR}>:RTMETER_EMULATED>)
  target_link_libraries(${TARGET} PRIVATE GTest::gtest_main $<TARGET_NAME_IF_EXISTS:rtmeter_options>)
endfunction()
