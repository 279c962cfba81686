#pragma once

// For tests of what memory the program itself takes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SKIP_UNDER_SANITIZERS() \
  GTEST_SKIP() << "sanitizers take memory of their own, and replace malloc and mlockall"
#else
#define SKIP_UNDER_SANITIZERS() (void)0
#endif
