# What is sourced decides which packages are found, and CMake keeps what it has found once: when something else is
# sourced than at the last configure, everything is looked for anew. Included before anything is looked for.
include_guard(GLOBAL)

# What the search depends on: the variables that setup files set, and the first python3, which ROS's packages start.
function(rtmeter_sourced INTO)
  set(told "")
  foreach(variable AMENT_PREFIX_PATH CMAKE_PREFIX_PATH ROS_DISTRO PKG_CONFIG_PATH PYTHONPATH VIRTUAL_ENV CONDA_PREFIX)
    string(APPEND told "${variable}=$ENV{${variable}}\n")
  endforeach()
  find_program(python3 NAMES python3 NO_CACHE NO_CMAKE_PATH NO_CMAKE_ENVIRONMENT_PATH)
  if(python3)
    file(REAL_PATH "${python3}" python3)
  endif()
  string(SHA256 told "${told}python3=${python3}")
  set(${INTO} ${told} PARENT_SCOPE)
endfunction()

# Forgets what was found. Stays: what CMake knows of itself and of the compilers, our own options (a BOOL or a STRING;
# what is found is a path), and what was given on this command line.
function(rtmeter_forget_found)
  get_cmake_property(names CACHE_VARIABLES)
  foreach(name IN LISTS names)
    get_property(help CACHE ${name} PROPERTY HELPSTRING)
    get_property(type CACHE ${name} PROPERTY TYPE)
    if(NOT name MATCHES "^(CMAKE_.*|RTMETER_SOURCE_DIR|BUILD_[A-Z_]+)$"
       AND NOT "${name} ${type}" MATCHES "^RTMETER_[A-Z0-9_]+ (BOOL|STRING)$"
       AND NOT help MATCHES "specified on the command line")
      unset(${name} CACHE)
    endif()
  endforeach()
endfunction()

rtmeter_sourced(RTMETER_SOURCED_NOW)
if(DEFINED CACHE{CMAKE_PROJECT_NAME} AND NOT "$CACHE{RTMETER_SOURCED}" STREQUAL RTMETER_SOURCED_NOW)
  message(STATUS "Another environment than at the last configure: everything is looked for anew")
  rtmeter_forget_found()
endif()
set(RTMETER_SOURCED ${RTMETER_SOURCED_NOW} CACHE INTERNAL "What was sourced at the last configure")
