#include "probe/status.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace rtmeter {

StatusOut::StatusOut() : fd_(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
  std::fflush(stdout);
  dup2(STDERR_FILENO, STDOUT_FILENO);
}

StatusOut::~StatusOut() {
  if (fd_ >= 0) close(fd_);
}

void StatusOut::write(const Json& object) {
  const std::string line = object.dump() + "\n";
  const std::lock_guard lock(mutex_);
  write_line(line);
}

void StatusOut::write_if_read(const Json& object) {
  const std::unique_lock lock(mutex_, std::try_to_lock);  // who holds it may be waiting for the reader
  if (lock.owns_lock() && is_read()) write_line(object.dump() + "\n");
}

// Half of a pipe is left for the lines that are not repeated.
bool StatusOut::is_read() const noexcept {
  int unread = 0;
  if (const int holds = fcntl(fd_, F_GETPIPE_SZ); holds > 0)
    return ioctl(fd_, FIONREAD, &unread) == 0 && unread < holds / 2;
  pollfd room{fd_, POLLOUT, 0};
  return poll(&room, 1, 0) > 0;
}

void StatusOut::write_line(const std::string& line) const {
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(fd_, line.data() + done, line.size() - done);
    if (n <= 0 && errno != EINTR) return;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
}

Json to_json(const Failure& failure) {
  return Json(Json::Object{{"field", failure.field()},
                           {"value", failure.value()},
                           {"message", failure.what()},
                           {"remedy", failure.remedy()}});
}

void StatusOut::error(const Failure& failure) {
  Json object = to_json(failure);
  object["event"] = "error";
  write(object);
}

}  // namespace rtmeter
