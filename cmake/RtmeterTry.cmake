# rtmeter_try(ADAPTER RESULT [ROS] package...): whether CMake can read what the packages bring. Their files may end
# the configure, for what they need is not there; that shall cost one adapter, not all.
# rtmeter_adapter_needs(ADAPTER package...): leaves an adapter out, and its CMakeLists.txt, if it cannot. Both take
# NO_SYSTEM_ENVIRONMENT_PATH, as find_package does.
include_guard(GLOBAL)
set(RTMETER_TRY_FOLDER ${CMAKE_CURRENT_LIST_DIR}/try)

# The first that went wrong, in one line.
function(rtmeter_first_error TEXT INTO)
  string(REPLACE ";" "," TEXT "${TEXT}")
  if(TEXT MATCHES "\n *([A-Za-z]*Error: [^\n]+)")  # Python's own words say more than CMake's about its exit code
    set(${INTO} "${CMAKE_MATCH_1}" PARENT_SCOPE)
  elseif(TEXT MATCHES "CMake Error at ([^\n]*):\n(([^\n]|\n[^\n]|\n\n  )*)")
    string(REGEX REPLACE "[ \n]+" " " words "${CMAKE_MATCH_2}")
    string(STRIP "${words}" words)
    string(SUBSTRING "${words}" 0 240 words)
    set(${INTO} "${words}" PARENT_SCOPE)
  else()
    set(${INTO} "CMake ends without a word" PARENT_SCOPE)
  endif()
endfunction()

# RESULT: empty if it can, otherwise why not. What went well is not tried again until something is sourced or
# installed.
function(rtmeter_try ADAPTER RESULT)
  cmake_parse_arguments(PARSE_ARGV 2 try "ROS;NO_SYSTEM_ENVIRONMENT_PATH" "" "")
  set(folder ${CMAKE_BINARY_DIR}/try/${ADAPTER})
  set(installed "")
  string(REPLACE ":" ";" prefixes "$ENV{AMENT_PREFIX_PATH}:$ENV{CMAKE_PREFIX_PATH}")
  foreach(place /var/lib/dpkg/status ${prefixes})
    file(TIMESTAMP ${place} when)
    string(APPEND installed "${place} ${when}\n")
    file(TIMESTAMP ${place}/share when)
    string(APPEND installed "${when}\n")
  endforeach()
  string(SHA256 key "$CACHE{RTMETER_SOURCED}${installed}${CMAKE_PREFIX_PATH}${Python3_EXECUTABLE}${ARGN}")
  set(${RESULT} "" PARENT_SCOPE)
  if("$CACHE{RTMETER_TRIED_${ADAPTER}}" STREQUAL key)
    return()
  endif()

  file(REMOVE_RECURSE ${folder})
  # The compilers are known already.
  file(COPY ${CMAKE_BINARY_DIR}/CMakeFiles/${CMAKE_VERSION} DESTINATION ${folder}/CMakeFiles
       PATTERN CompilerId* EXCLUDE)
  set(same "")
  foreach(variable CMAKE_C_COMPILER CMAKE_CXX_COMPILER CMAKE_BUILD_TYPE CMAKE_PREFIX_PATH CMAKE_MAKE_PROGRAM
                   CMAKE_TOOLCHAIN_FILE Python3_EXECUTABLE SKBUILD)
    if(DEFINED ${variable})
      string(REPLACE ";" "\\;" value "${${variable}}")
      list(APPEND same "-D${variable}=${value}")
    endif()
  endforeach()
  execute_process(
    COMMAND ${CMAKE_COMMAND} -G ${CMAKE_GENERATOR} -S ${RTMETER_TRY_FOLDER} -B ${folder} ${same}
            "-DPACKAGES=${try_UNPARSED_ARGUMENTS}" -DROS=${try_ROS}
            -DNOT_BY_PATH=${try_NO_SYSTEM_ENVIRONMENT_PATH}
    RESULT_VARIABLE code
    OUTPUT_VARIABLE text
    ERROR_VARIABLE text)
  if(code EQUAL 0)
    set(RTMETER_TRIED_${ADAPTER} ${key} CACHE INTERNAL "That its packages can be read")
    return()
  endif()
  unset(RTMETER_TRIED_${ADAPTER} CACHE)
  file(WRITE ${folder}.log "${text}")
  rtmeter_first_error("${text}" why)
  set(${RESULT} "what CMake says of its packages: ${why} (${folder}.log)" PARENT_SCOPE)
endfunction()

macro(rtmeter_adapter_needs ADAPTER)
  rtmeter_try(${ADAPTER} why_not ${ARGN})
  if(why_not)
    rtmeter_adapter_missing(${ADAPTER} "${why_not}")
    return()  # of who calls this
  endif()
endmacro()
