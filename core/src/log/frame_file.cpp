#include "log/frame_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "errors.hpp"
#include "log/crc32c.hpp"
#include "system/descriptor.hpp"

namespace rtmeter {
namespace {

constexpr char kMagicAndVersion[12] = {'\x89', 'R', 'T', 'M', '\r', '\n', '\x1a', '\n', 1, 0, 0, 0};
constexpr char kSync[4] = {'R', 'B', 'F', 1};

template <typename T>
void put_little_endian(std::uint8_t* at, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) at[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

}  // namespace

FrameFile::FrameFile(const std::string& path)
    : path_(path), fd_(clear_of_standard(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644))) {
  if (fd_ < 0) {
    const int error = errno;
    throw Failure("log", path, std::string("cannot create the sample log: ") + std::strerror(error),
                  error == EEXIST ? "remove the file or choose another path"
                                  : "choose a path in a directory that exists and can be written");
  }
  // A file size limit (RLIMIT_FSIZE) shall be an error like a full disk, not the death of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    write_bytes(kMagicAndVersion, sizeof kMagicAndVersion);
  } catch (...) {
    ::close(fd_);
    unlink(path.c_str());  // empty, it would be in the next run's way
    throw;
  }
}

FrameFile::~FrameFile() {
  if (fd_ >= 0) ::close(fd_);
}

void FrameFile::write(char kind, std::uint64_t first_row, std::size_t row_count, std::size_t payload_bytes,
                      std::vector<std::uint8_t>& frame) {
  std::uint8_t* head = frame.data();
  std::memcpy(head, kSync, sizeof kSync);
  put_little_endian(head + 4, static_cast<std::uint32_t>(kind));
  put_little_endian(head + 8, first_row);
  put_little_endian(head + 16, static_cast<std::uint32_t>(row_count));
  put_little_endian(head + 20, static_cast<std::uint32_t>(payload_bytes));
  put_little_endian(head + 24, crc32c(head + kHeadBytes, payload_bytes));
  put_little_endian(head + 28, crc32c(head, 28));
  write_bytes(head, kHeadBytes + payload_bytes);
}

void FrameFile::close() {
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) fail(errno);
}

void FrameFile::write_bytes(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = pwrite(fd_, from + done, bytes - done, static_cast<off_t>(bytes_ + done));
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      fail(n == 0 ? ENOSPC : errno);
    }
  }
  bytes_ += bytes;
}

void FrameFile::fail(int error) const {
  std::string message = std::string("cannot write the sample log: ") + std::strerror(error);
  if (fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(bytes_)) != 0) {
    message += std::string("; nor cut it back to its last whole frame: ") + std::strerror(errno);
  }
  throw Failure("log", path_, message,
                "make room or choose another disk; what was written before can be read");
}

}  // namespace rtmeter
