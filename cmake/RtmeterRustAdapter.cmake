# rtmeter_add_rust_adapter(): one call makes a probe of an adapter in Rust. Include it in place of
# RtmeterAdapter.cmake.

include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/RtmeterAdapter.cmake)

# Why Rust cannot be built here, or what is missing for the crate in CRATE_DIR; empty if all is there.
# Fetches the crate's packages, since a build that has begun shall not fail for want of a network.
function(rtmeter_rust_lacks CRATE_DIR RESULT)
  file(STRINGS ${CRATE_DIR}/Cargo.toml wanted REGEX "^rust-version *=")
  string(REGEX MATCH "[0-9.]+" wanted "${wanted}")
  set(remedy "Rust ${wanted} or newer: apt install cargo-web, or rustup")
  set(lacks "")
  find_program(RTMETER_CARGO cargo HINTS $ENV{HOME}/.cargo/bin)
  find_program(RTMETER_RUSTC rustc HINTS $ENV{HOME}/.cargo/bin)
  if(CMAKE_CROSSCOMPILING)
    set(lacks "a build for this machine: adapters in Rust are not cross-compiled")
  elseif(RTMETER_SANITIZE)
    set(lacks "a build without sanitizers: stable Rust has none")
  elseif(NOT RTMETER_CARGO OR NOT RTMETER_RUSTC)
    set(lacks "${remedy}")
  else()
    execute_process(COMMAND ${RTMETER_RUSTC} --version --verbose OUTPUT_VARIABLE words ERROR_QUIET)
    string(REGEX MATCH "[0-9]+(\\.[0-9]+)+" version "${words}")
    string(REGEX REPLACE ".*host: ([^\n]*).*" "\\1" host "${words}")
    if(NOT version OR version VERSION_LESS wanted)
      set(lacks "${remedy} (${RTMETER_RUSTC} is ${version})")
    else()
      execute_process(COMMAND ${RTMETER_CARGO} fetch --locked --target ${host}
                              --manifest-path ${CRATE_DIR}/Cargo.toml
                      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE words)
      if(failed)
        message(STATUS "cargo fetch: ${words}")
        string(STRIP "${words}" words)
        string(REGEX MATCH "[^\n]*$" cause "${words}")
        string(STRIP "${cause}" cause)
        set(lacks "its packages from crates.io (${cause})")
      endif()
    endif()
  endif()
  set(${RESULT} "${lacks}" PARENT_SCOPE)
endfunction()

# rtmeter_add_rust_adapter(NAME [SOURCES file...] [LIBRARIES library...] [TESTS file...])
#
# The crate beside the calling CMakeLists.txt is a static library on top of the crate in adapters/common/rust.
# SOURCES are in C or C++, for what the adapter takes from there; LIBRARIES and TESTS as in
# rtmeter_add_adapter(). Where Rust cannot be built the adapter is left out.
function(rtmeter_add_rust_adapter NAME)
  cmake_parse_arguments(PARSE_ARGV 1 adapter "" "" "SOURCES;LIBRARIES;TESTS")
  set(crate_dir ${CMAKE_CURRENT_SOURCE_DIR})
  get_filename_component(shared_crate ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../adapters/common/rust ABSOLUTE)
  rtmeter_rust_lacks(${crate_dir} lacks)
  if(lacks)
    rtmeter_adapter_missing(${NAME} "${lacks}")
    return()
  endif()

  # One folder for all, so that adapters share what they have in common; or where the user wants it.
  set(target_dir $ENV{CARGO_TARGET_DIR})
  if(NOT target_dir)
    set(target_dir ${CMAKE_BINARY_DIR}/cargo)
  endif()
  file(STRINGS ${crate_dir}/Cargo.toml crate REGEX "^name *=" LIMIT_COUNT 1)
  string(REGEX REPLACE "^name *= *\"(.*)\".*" "\\1" crate "${crate}")
  string(REPLACE "-" "_" crate ${crate})
  set(library ${target_dir}/release/lib${crate}.a)
  file(GLOB sources CONFIGURE_DEPENDS ${crate_dir}/src/*.rs ${shared_crate}/src/*.rs)
  add_custom_command(
    OUTPUT ${library}
    COMMAND ${CMAKE_COMMAND} -E env RUSTC=${RTMETER_RUSTC} ${RTMETER_CARGO} build --release --locked --offline
            --quiet --manifest-path ${crate_dir}/Cargo.toml --target-dir ${target_dir}
    DEPENDS ${sources} ${crate_dir}/Cargo.toml ${crate_dir}/Cargo.lock ${shared_crate}/Cargo.toml
    COMMENT "Building ${NAME} with cargo"
    VERBATIM)
  add_custom_target(rtmeter_rust_${NAME} DEPENDS ${library})
  set_target_properties(rtmeter_rust_${NAME} PROPERTIES CARGO_CRATE_DIR ${crate_dir} CARGO_TARGET_DIR ${target_dir})
  find_package(Threads REQUIRED)  # in this folder, where nothing else may have asked for it
  add_library(rtmeter_rust_${NAME}_library STATIC IMPORTED)
  set_target_properties(rtmeter_rust_${NAME}_library PROPERTIES IMPORTED_LOCATION ${library})
  target_link_libraries(rtmeter_rust_${NAME}_library INTERFACE rtmeter::core Threads::Threads ${CMAKE_DL_LIBS} m)
  add_dependencies(rtmeter_rust_${NAME}_library rtmeter_rust_${NAME})

  rtmeter_add_adapter(
    ${NAME}
    SOURCES ${shared_crate}/main.cpp ${adapter_SOURCES}
    LIBRARIES rtmeter_rust_${NAME}_library ${adapter_LIBRARIES}
    TESTS ${adapter_TESTS})
endfunction()
