#pragma once

// Under qemu (`make cross`) a process also has the emulator's threads and page faults, and more address
// space; /proc tells the emulator's system calls, and its work takes many times as long.
#ifdef RTMETER_EMULATED
#define SKIP_UNDER_EMULATION() GTEST_SKIP() << "threads, faults, limits and system calls are the emulator's"
#else
#define SKIP_UNDER_EMULATION() (void)0
#endif
