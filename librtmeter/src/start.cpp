#include "start.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "errors.hpp"
#include "system/descriptor.hpp"

namespace rtmeter {
namespace {

constexpr std::size_t kLongestName = 64;
constexpr int kMostStartsASecond = 1000;

void check_name(const std::string& name) {
  const char* allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (name.empty() || name.size() > kLongestName || name[0] == '.' ||
      name.find_first_not_of(allowed) != std::string::npos) {
    throw Failure("name", name, "is no name of a loop",
                  "give 1 to 64 letters, digits, '.', '_' or '-', not beginning with '.'");
  }
}

[[noreturn]] void refuse(const std::string& path, int error) {
  throw Failure("folder", path, std::string("cannot be made: ") + std::strerror(error),
                "choose a folder that this program may write to");
}

// A lock that others can ask about without taking it (fcntl(2), F_OFD_GETLK).
int lock(const std::string& parent, const std::string& name) {
  const std::string file = parent + "/lock";
  const int fd = clear_of_standard(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (fd < 0) refuse(file, errno);
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(fd, F_OFD_SETLK, &whole) != 0 && (errno == EAGAIN || errno == EACCES)) {
    close(fd);  // otherwise: a file system without locks
    throw Failure("name", name, "is open already, in this process or another",
                  "close that loop, or choose another name or folder");
  }
  static_cast<void>(ftruncate(fd, 0));  // it named the start before
  return fd;
}

// A child that was forked meanwhile may have the file open still: it holds nothing any more.
void unlock(int fd) {
  struct flock whole{};
  whole.l_type = F_UNLCK;
  fcntl(fd, F_OFD_SETLK, &whole);
  close(fd);
}

// Which start holds it: by the folders' names nobody knows, for the wall clock may have been put back.
bool name_holder(int lock, const std::string& start) {
  return write(lock, start.data(), start.size()) == static_cast<ssize_t>(start.size());
}

}  // namespace

Start::Start(const std::string& folder, const std::string& name) : lock_(-1) {
  check_name(name);
  std::error_code error;
  std::filesystem::path place =
      std::filesystem::absolute(folder, error);  // the program may change its directory
  if (error) place = folder;
  const std::string parent = (place / name).string();
  std::filesystem::create_directories(parent, error);
  if (error) refuse(parent, error.value());
  lock_ = lock(parent, name);

  char time[32];
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  std::strftime(time, sizeof time, "/%Y%m%dT%H%M%SZ", gmtime_r(&now, &parts));
  for (int n = 1; path_.empty(); ++n) {
    const std::string path = parent + time + (n > 1 ? "-" + std::to_string(n) : "") + ".loop";
    if (mkdir(path.c_str(), 0777) == 0) {
      path_ = path;
    } else if (errno != EEXIST || n == kMostStartsASecond) {
      const int why = errno;
      unlock(lock_);
      refuse(path, why);
    }
  }
  if (!name_holder(lock_, path_.substr(parent.size() + 1))) {
    const int why = errno;
    rmdir(path_.c_str());
    unlock(lock_);
    refuse(parent + "/lock", why);
  }
}

Start::~Start() {
  std::error_code ignored;
  if (!kept_) std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) unlock(lock_);
}

void Start::disown() noexcept {
  if (lock_ >= 0) close(lock_);
  lock_ = -1;
}

}  // namespace rtmeter
