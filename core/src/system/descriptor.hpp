// File descriptors of ours in a program that may have closed its own.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace rtmeter {

// The same open file clear of 0 to 2, through which the program reads and prints whatever is there; below 0
// with errno set as open() left it, or as this fails.
inline int clear_of_standard(int fd) noexcept {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
  return higher;
}

}  // namespace rtmeter
