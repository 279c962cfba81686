# What the cross toolchains share: compiler, and the target's libraries as Debian's multiarch lays them out.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${RTMETER_TRIPLET}-gcc)
set(CMAKE_CXX_COMPILER ${RTMETER_TRIPLET}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${RTMETER_TRIPLET})
set(CMAKE_FIND_ROOT_PATH /usr/${RTMETER_TRIPLET} /)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/${RTMETER_TRIPLET}/pkgconfig:/usr/share/pkgconfig)
