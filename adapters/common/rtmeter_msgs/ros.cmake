# For ROS 2 adapters: finds ROS 2 and builds the messages, once. Sets RTMETER_ROS to sourced (then use
# find_package for more of it), pypi, or nothing, in which case RTMETER_ROS_NEEDS says what is missing. Leaves
#   rtmeter_ros            rcl and its RMW, to link with
#   rtmeter_msgs_c         the C code of the messages; rtmeter_msgs_cpp: the C++ code, of a sourced ROS 2 only
#   rtmeter_ros_probe(P)   lets probe P find its libraries when it runs
# Before what PATH leads to, such as PyPI's packages in a virtual environment: not every setup file tells CMake.
if(DEFINED ENV{AMENT_PREFIX_PATH})
  string(REPLACE ":" ";" ament_prefixes "$ENV{AMENT_PREFIX_PATH}")
  list(PREPEND CMAKE_PREFIX_PATH ${ament_prefixes})
endif()
get_property(looked GLOBAL PROPERTY RTMETER_ROS_NEEDS SET)
if(NOT looked)
  add_subdirectory(${CMAKE_CURRENT_LIST_DIR} ${CMAKE_BINARY_DIR}/rtmeter_msgs)
endif()
get_property(RTMETER_ROS GLOBAL PROPERTY RTMETER_ROS)
get_property(RTMETER_ROS_NEEDS GLOBAL PROPERTY RTMETER_ROS_NEEDS)
if(RTMETER_ROS STREQUAL sourced)
  find_package(rcl REQUIRED)  # its targets are known in a folder that asks for them only
endif()
