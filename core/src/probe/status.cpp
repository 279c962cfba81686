#include "probe/status.hpp"

#include <fcntl.h>
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
