# A ROS 2 whose setup file was sourced: everything by its own CMake packages, none of another that PATH leads to.
foreach(package rcl rmw rosidl_default_generators)
  find_package(${package} QUIET NO_SYSTEM_ENVIRONMENT_PATH)
  if(NOT ${package}_FOUND)
    set_property(GLOBAL PROPERTY RTMETER_ROS_NEEDS "apt install ros-$ENV{ROS_DISTRO}-${package}")
    return()
  endif()
endforeach()
set_property(GLOBAL PROPERTY RTMETER_ROS sourced)

# Client libraries that have actions bring what an action's messages are made of.
find_package(action_msgs QUIET NO_SYSTEM_ENVIRONMENT_PATH)
if(action_msgs_FOUND)
  list(APPEND files action/Errand.action)
endif()

set(CMAKE_INSTALL_RPATH "\$ORIGIN")  # the libraries of the messages find each other
rosidl_generate_interfaces(${PROJECT_NAME} ${files} SKIP_GROUP_MEMBERSHIP_CHECK)
add_library(rtmeter_msgs_c INTERFACE)
add_library(rtmeter_msgs_cpp INTERFACE)
if(COMMAND rosidl_get_typesupport_target)
  rosidl_get_typesupport_target(c_target ${PROJECT_NAME} rosidl_typesupport_c)
  rosidl_get_typesupport_target(cpp_target ${PROJECT_NAME} rosidl_typesupport_cpp)
  target_link_libraries(rtmeter_msgs_c INTERFACE ${c_target})
  target_link_libraries(rtmeter_msgs_cpp INTERFACE ${cpp_target})
endif()
# The one that the RMW wants is loaded by its name alone, which finds what the program has loaded already: it is
# needed, though nothing calls it. All else that ROS 2's targets name, such as Python, is linked if it is called.
foreach(language c cpp)
  target_link_options(rtmeter_msgs_${language} INTERFACE -Wl,--as-needed)
  foreach(kind introspection fastrtps)
    set(support ${PROJECT_NAME}__rosidl_typesupport_${kind}_${language})
    if(TARGET ${support})
      target_link_libraries(
        rtmeter_msgs_${language}
        INTERFACE ${support} -Wl,--push-state,--no-as-needed,$<TARGET_FILE:${support}>,--pop-state)
    endif()
  endforeach()
endforeach()

add_library(rtmeter_ros INTERFACE)
target_link_libraries(rtmeter_ros INTERFACE rcl::rcl rmw::rmw)
target_compile_definitions(rtmeter_ros INTERFACE RTMETER_RCL_VERSION="${rcl_VERSION}")

# The setup file tells the loader where ROS 2 lies; the libraries of the messages are installed in lib.
function(rtmeter_ros_probe PROBE)
  set_target_properties(${PROBE} PROPERTIES INSTALL_RPATH "\$ORIGIN/..")
endfunction()
