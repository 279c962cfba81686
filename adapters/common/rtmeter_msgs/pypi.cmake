# PyPI's packages of ROS 2, in the virtual environment whose Python is Python3_EXECUTABLE: by default that of the
# checkout. Their CMake packages name folders that are not there, so libraries and headers are found here. There
# is no rmw_implementation: rcl is linked with its only RMW.
get_filename_component(checkout ${CMAKE_CURRENT_SOURCE_DIR}/../../.. ABSOLUTE)
if(NOT Python3_EXECUTABLE AND EXISTS ${checkout}/.venv/bin/python)
  set(Python3_EXECUTABLE ${checkout}/.venv/bin/python)
endif()
find_package(Python3 QUIET COMPONENTS Interpreter Development)
if(Python3_Interpreter_FOUND)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import sys; print(sys.prefix, end='')" OUTPUT_VARIABLE prefix)
endif()
if(NOT EXISTS "${prefix}/lib/librcl.so" OR NOT EXISTS "${prefix}/lib/librmw_fastrtps_cpp.so")
  set_property(
    GLOBAL
    PROPERTY RTMETER_ROS_NEEDS
             "source a ROS 2's setup.bash, or have Python 3.11 on x86_64: make installs ros-rcl from PyPI then")
  return()
elseif(NOT Python3_Development_FOUND)
  set_property(GLOBAL PROPERTY RTMETER_ROS_NEEDS "apt install libpython3-dev")
  return()
endif()
set_property(GLOBAL PROPERTY RTMETER_ROS pypi)
set_property(GLOBAL PROPERTY RTMETER_ROS_PREFIX ${prefix})
set_target_properties(Python3::Python PROPERTIES IMPORTED_GLOBAL ON)

file(STRINGS ${prefix}/share/rcl/package.xml version REGEX "<version>")
string(REGEX MATCH "[0-9.]+[0-9]" version "${version}")
file(GLOB includes ${prefix}/include/r* ${prefix}/include/*_interfaces ${prefix}/include/*_msgs)
add_library(rtmeter_ros INTERFACE)
target_include_directories(rtmeter_ros SYSTEM INTERFACE ${prefix}/include ${includes})
target_compile_definitions(rtmeter_ros INTERFACE RTMETER_RCL_VERSION="${version}")
foreach(library rcl rcl_action rmw rmw_fastrtps_cpp rcutils rosidl_runtime_c)
  target_link_libraries(rtmeter_ros INTERFACE ${prefix}/lib/lib${library}.so)
endforeach()
target_link_libraries(rtmeter_ros INTERFACE Python3::Python)  # their Python conversions have need of it

# Of an interface in C: messages have no more than these, services and actions type supports of their own.
set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated/${PROJECT_NAME})
function(sources_of KIND NAME OUT)
  set(detail ${generated}/${KIND}/detail/${NAME}__)
  set(found ${detail}description.c ${detail}functions.c ${detail}type_support_c.cpp
            ${generated}/${KIND}/${NAME}__type_support.cpp)
  if(NOT KIND STREQUAL msg)
    list(APPEND found ${detail}type_support.c)
  endif()
  set(${OUT} ${found} PARENT_SCOPE)
endfunction()
sources_of(msg message message_sources)
sources_of(srv call call_sources)
sources_of(action errand errand_sources)
set(python_sources ${generated}/_${PROJECT_NAME}_s.ep.rosidl_typesupport_c.c ${generated}/msg/_message_s.c
                   ${generated}/srv/_call_s.c ${generated}/action/_errand_s.c)
add_custom_command(
  OUTPUT ${message_sources} ${call_sources} ${errand_sources} ${python_sources}
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${generated}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/generate.py ${generated} msg/Message.msg srv/Call.srv
          action/Errand.action
  WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
  DEPENDS generate.py msg/Message.msg srv/Call.srv action/Errand.action
  VERBATIM)

# The code in C, or its conversions of Python's (py), of the interfaces that these use.
function(link_with_interfaces TARGET LANGUAGE)
  set(parts rosidl_generator_c rosidl_typesupport_c rosidl_typesupport_fastrtps_c)
  if(LANGUAGE STREQUAL py)
    list(APPEND parts rosidl_generator_py)
  endif()
  foreach(package ${ARGN})
    foreach(part ${parts})
      target_link_libraries(${TARGET} PUBLIC ${prefix}/lib/lib${package}__${part}.so)
    endforeach()
  endforeach()
endfunction()

add_library(rtmeter_msgs_c STATIC ${message_sources} ${call_sources} ${errand_sources})
set_target_properties(rtmeter_msgs_c PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(rtmeter_msgs_c SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR}/generated)
target_link_libraries(rtmeter_msgs_c PUBLIC rtmeter_ros ${prefix}/lib/librosidl_typesupport_fastrtps_c.so
                                            ${prefix}/lib/librosidl_typesupport_fastrtps_cpp.so
                                            ${prefix}/lib/libfastcdr.so)
link_with_interfaces(rtmeter_msgs_c c action_msgs builtin_interfaces service_msgs unique_identifier_msgs)

# The Python package, of which all is in the folder python.
set(python ${CMAKE_CURRENT_BINARY_DIR}/python/${PROJECT_NAME})
file(GLOB numpy ${prefix}/lib/python*/site-packages/numpy/_core/include)
add_library(rtmeter_msgs_py MODULE EXCLUDE_FROM_ALL ${python_sources})
target_include_directories(rtmeter_msgs_py SYSTEM PRIVATE ${numpy})
target_link_libraries(rtmeter_msgs_py PUBLIC rtmeter_msgs_c)
link_with_interfaces(rtmeter_msgs_py py action_msgs builtin_interfaces service_msgs unique_identifier_msgs)
set_target_properties(
  rtmeter_msgs_py PROPERTIES PREFIX "" OUTPUT_NAME ${PROJECT_NAME}_s__rosidl_typesupport_c
                             LIBRARY_OUTPUT_DIRECTORY ${python})
add_custom_command(
  TARGET rtmeter_msgs_py POST_BUILD
  COMMAND ${CMAKE_COMMAND} -E touch ${python}/__init__.py
  COMMAND ${CMAKE_COMMAND} -E make_directory ${python}/msg ${python}/srv ${python}/action
  COMMAND ${CMAKE_COMMAND} -E copy ${generated}/msg/__init__.py ${generated}/msg/_message.py ${python}/msg
  COMMAND ${CMAKE_COMMAND} -E copy ${generated}/srv/__init__.py ${generated}/srv/_call.py ${python}/srv
  COMMAND ${CMAKE_COMMAND} -E copy ${generated}/action/__init__.py ${generated}/action/_errand.py ${python}/action
  VERBATIM)
set_property(GLOBAL PROPERTY RTMETER_ROS_PYTHON_PACKAGES ${CMAKE_CURRENT_BINARY_DIR}/python)

# The packages rely on the loader's path for each other: the probe has it, as an RPATH since a RUNPATH would not
# serve the libraries of libraries. An installed probe uses the same virtual environment.
file(GLOB vendored ${prefix}/lib/python*/site-packages/ros_*.libs)
set_property(GLOBAL PROPERTY RTMETER_ROS_RPATH "${prefix}/lib;${vendored};${Python3_LIBRARY_DIRS}")
function(rtmeter_ros_probe PROBE)
  get_property(rpath GLOBAL PROPERTY RTMETER_ROS_RPATH)
  set_target_properties(${PROBE} PROPERTIES BUILD_RPATH "${rpath}" INSTALL_RPATH "${rpath}")
  target_link_options(${PROBE} PRIVATE -Wl,--disable-new-dtags -Wl,--no-as-needed)
endfunction()
