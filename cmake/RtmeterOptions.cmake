# Sources that are compiled together share what their headers make, most of the time that it takes; one by one is
# for who changes one of them again and again, and for clang-tidy.
option(RTMETER_UNITY "Compile the core's sources, and its tests', several at once" ON)

# Warnings and sanitizers for every target of ours: target_link_libraries(T PRIVATE rtmeter_options).
add_library(rtmeter_options INTERFACE)
target_compile_options(rtmeter_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                                 $<$<BOOL:${RTMETER_WERROR}>:-Werror>)
# Logs of more than 2 GiB on 32-bit systems too.
target_compile_definitions(rtmeter_options INTERFACE _FILE_OFFSET_BITS=64)
# GCC 12 warns of strings that overlap where none do (its bug 105651).
target_compile_options(
  rtmeter_options
  INTERFACE $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
if(RTMETER_SANITIZE)
  target_compile_options(rtmeter_options INTERFACE -fsanitize=${RTMETER_SANITIZE} -fno-sanitize-recover=all
                                                   -fno-omit-frame-pointer -g)
  target_link_options(rtmeter_options INTERFACE -fsanitize=${RTMETER_SANITIZE})
endif()
