# Installs what adapters outside this source tree need: the core, its headers and a CMake package.
# (Each probe installs itself: rtmeter_add_adapter.)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/${PROJECT_NAME})

install(TARGETS rtmeter_core EXPORT rtmeter-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(DIRECTORY core/include/rtmeter DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(EXPORT rtmeter-targets NAMESPACE rtmeter:: DESTINATION ${package_dir} COMPONENT development)

configure_package_config_file(cmake/rtmeter-config.cmake.in ${PROJECT_BINARY_DIR}/rtmeter-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rtmeter-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rtmeter-config.cmake ${PROJECT_BINARY_DIR}/rtmeter-config-version.cmake
              cmake/RtmeterAdapter.cmake cmake/RtmeterAdapterTable.cmake cmake/RtmeterDescribe.cmake
              cmake/RtmeterTests.cmake
        DESTINATION ${package_dir} COMPONENT development)
install(FILES package.xml LICENSE DESTINATION share/${PROJECT_NAME} COMPONENT development)

# By this empty file ROS 2's tools, such as `ros2 run`, know a package.
file(WRITE ${PROJECT_BINARY_DIR}/ament_index/${PROJECT_NAME} "")
install(FILES ${PROJECT_BINARY_DIR}/ament_index/${PROJECT_NAME}
        DESTINATION share/ament_index/resource_index/packages COMPONENT development)

# They look for packages in AMENT_PREFIX_PATH, which colcon sets for packages of ament's build type only:
# colcon.pkg names this hook. Without a ROS 2 the variable stays unset, as it says whether one is sourced.
get_property(ros GLOBAL PROPERTY RTMETER_ROS)
if(ros STREQUAL sourced)
  file(WRITE ${PROJECT_BINARY_DIR}/ament_prefix_path.dsv "prepend-non-duplicate;AMENT_PREFIX_PATH;\n")
  install(FILES ${PROJECT_BINARY_DIR}/ament_prefix_path.dsv DESTINATION share/${PROJECT_NAME}/environment
          COMPONENT development)
endif()
