# 32-bit ARM, hard float, with Debian's compiler (packages/cross.txt); tests run under qemu.
set(RTMETER_TRIPLET arm-linux-gnueabihf)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-arm)
set(CMAKE_CXX_FLAGS_INIT -Wno-psabi)  # notes about an interface that changed in GCC 7
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
