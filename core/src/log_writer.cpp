#include "log_writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "crc32c.hpp"
#include "errors.hpp"

namespace rtmeter {
namespace {

constexpr std::size_t kHeadBytes = 32;
constexpr std::size_t kMaxPayloadBytes = 16u << 20;
constexpr std::size_t kMaxColumns = 64;
constexpr std::size_t kFrameRows = 8192;  // well below the format's 65,536: keeps the buffers small
constexpr int kZstdLevel = 3;  // docs/benchmarks.md: the best ratio that costs no more time than level 1
constexpr char kFile[12] = {'\x89', 'R', 'T', 'M', '\r', '\n', '\x1a', '\n', 1, 0, 0, 0};

template <typename T>
void put_little_endian(std::uint8_t* at, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) at[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

std::size_t column_count(const Json& header, const std::string& path) {
  const Json* columns = header.find("columns");
  const std::size_t count = columns != nullptr && columns->is_array() ? columns->as_array().size() : 0;
  if (count == 0 || count > kMaxColumns) {
    throw Failure("log", path, "a sample log has 1 to 64 columns, not " + std::to_string(count), "");
  }
  return count;
}

}  // namespace

struct LogWriter::Impl {
  Impl(const std::string& path, const Json& header)
      : path_(path), columns_(column_count(header, path)), held_(kFrameRows * columns_), values_(kFrameRows),
        planes_(held_.size() * 8), frame_(kHeadBytes + ZSTD_compressBound(planes_.size())),
        zstd_(ZSTD_createCCtx(), ZSTD_freeCCtx) {
    // The writer must survive a file size limit (RLIMIT_FSIZE) and report it like a full disk.
    std::signal(SIGXFSZ, SIG_IGN);
    ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_compressionLevel, kZstdLevel);
    // Compressing once a frame of full size makes zstd take its memory now.
    ZSTD_compress2(zstd_.get(), frame_.data(), frame_.size(), planes_.data(), planes_.size());
    fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd_ < 0) {
      throw Failure("log", path, std::string("cannot create the sample log: ") + std::strerror(errno),
                    errno == EEXIST ? "remove the file or choose another path"
                                    : "choose a path in a directory that exists and can be written");
    }
    try {
      write_bytes(kFile, sizeof kFile);
      write_json('H', header);
      write_json('H', header);
    } catch (...) {
      close(fd_);
      throw;
    }
  }

  ~Impl() {
    if (fd_ >= 0) close(fd_);
  }

  void append(const std::int64_t* rows, std::size_t count) {
    rows_ += count;
    while (count > 0) {
      check();
      const std::size_t taken = std::min(count, kFrameRows - held_rows_);
      std::copy_n(rows, taken * columns_, held_.data() + held_rows_ * columns_);
      held_rows_ += taken;
      rows += taken * columns_;
      count -= taken;
      if (held_rows_ == kFrameRows) flush();
    }
  }

  void flush() {
    check();
    if (held_rows_ == 0) return;
    for (std::size_t column = 0; column < columns_; ++column) encode(column);
    const std::size_t bytes =
        ZSTD_compress2(zstd_.get(), frame_.data() + kHeadBytes, frame_.size() - kHeadBytes, planes_.data(),
                       held_rows_ * columns_ * 8);
    if (ZSTD_isError(bytes)) fail(std::string("zstd: ") + ZSTD_getErrorName(bytes));
    write_frame('R', written_rows_, held_rows_, frame_, bytes);
    written_rows_ += held_rows_;
    held_rows_ = 0;
  }

  // One column of the rows held back into its eight byte planes (spec/sample-log.md).
  void encode(std::size_t column) {
    std::uint64_t previous = 0;
    for (std::size_t row = 0; row < held_rows_; ++row) {
      const auto value = static_cast<std::uint64_t>(held_[row * columns_ + column]);
      const std::uint64_t delta = value - previous;
      values_[row] = delta << 1 ^ (0 - (delta >> 63));
      previous = value;
    }
    std::uint8_t* plane = planes_.data() + column * 8 * held_rows_;
    for (int shift = 0; shift < 64; shift += 8, plane += held_rows_) {
      for (std::size_t row = 0; row < held_rows_; ++row) {
        plane[row] = static_cast<std::uint8_t>(values_[row] >> shift);
      }
    }
  }

  void write_json(char kind, const Json& object) {
    const std::string text = object.dump();
    if (text.size() > kMaxPayloadBytes) {
      throw Failure("log", path_, "a header or update above 16 MiB", "give fewer or shorter options");
    }
    std::vector<std::uint8_t> frame(kHeadBytes + text.size());
    std::copy(text.begin(), text.end(), frame.begin() + kHeadBytes);
    write_frame(kind, rows_, 0, frame, text.size());
  }

  // Fills in the head of a frame whose payload already stands behind it, and writes both.
  void write_frame(char kind, std::uint64_t first_row, std::size_t row_count,
                   std::vector<std::uint8_t>& frame, std::size_t payload_bytes) {
    std::uint8_t* head = frame.data();
    std::memcpy(head, "RBF\x01", 4);
    put_little_endian(head + 4, static_cast<std::uint32_t>(kind));
    put_little_endian(head + 8, first_row);
    put_little_endian(head + 16, static_cast<std::uint32_t>(row_count));
    put_little_endian(head + 20, static_cast<std::uint32_t>(payload_bytes));
    put_little_endian(head + 24, crc32c(head + kHeadBytes, payload_bytes));
    put_little_endian(head + 28, crc32c(head, 28));
    write_bytes(head, kHeadBytes + payload_bytes);
  }

  void write_bytes(const void* data, std::size_t bytes) {
    const auto* from = static_cast<const char*>(data);
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t n = pwrite(fd_, from + done, bytes - done, static_cast<off_t>(bytes_ + done));
      if (n > 0) {
        done += static_cast<std::size_t>(n);
      } else if (n == 0 || errno != EINTR) {
        fail(n == 0 ? "nothing could be written" : std::strerror(errno));
      }
    }
    bytes_ += bytes;
  }

  // Cuts the file back to the last whole frame; from then on every row is lost, and counted.
  [[noreturn]] void fail(const std::string& why) {
    held_rows_ = 0;
    std::string message = "cannot write the sample log: " + why;
    if (ftruncate(fd_, static_cast<off_t>(bytes_)) != 0)
      message += "; nor cut it back to its last whole frame";
    failure_.emplace("log", path_, message,
                     "free or choose another disk; what was written before can be read");
    throw Failure(*failure_);
  }

  void check() const {
    if (failure_) throw Failure(*failure_);
    if (fd_ < 0) throw Failure("log", path_, "the sample log is already finished", "");
  }

  std::mutex mutex_;
  const std::string path_;
  const std::size_t columns_;
  int fd_ = -1;
  std::uint64_t bytes_ = 0;         // of whole frames in the file
  std::uint64_t rows_ = 0;          // appended
  std::uint64_t written_rows_ = 0;  // in frames
  std::size_t held_rows_ = 0;       // in held_
  std::vector<std::int64_t> held_;
  std::vector<std::uint64_t> values_;  // one column's zig-zag coded deltas
  std::vector<std::uint8_t> planes_;
  std::vector<std::uint8_t> frame_;
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> zstd_;
  std::optional<Failure> failure_;
};

LogWriter::LogWriter(const std::string& path, const Json& header)
    : impl_(std::make_unique<Impl>(path, header)) {}
LogWriter::~LogWriter() = default;

void LogWriter::append(const std::int64_t* rows, std::size_t count) {
  const std::lock_guard lock(impl_->mutex_);
  impl_->append(rows, count);
}

void LogWriter::flush() {
  const std::lock_guard lock(impl_->mutex_);
  impl_->flush();
}

void LogWriter::update(const Json& object) {
  const std::lock_guard lock(impl_->mutex_);
  impl_->flush();
  impl_->write_json('J', object);
}

void LogWriter::finish(const Json& object) {
  const std::lock_guard lock(impl_->mutex_);
  if (!impl_->failure_) impl_->flush();
  // After a failure too, if it still fits: its row count then tells how many rows were lost.
  impl_->write_json('E', object);
  const int fd = impl_->fd_;
  impl_->fd_ = -1;
  if (close(fd) != 0) {
    throw Failure("log", impl_->path_, std::string("cannot close the sample log: ") + std::strerror(errno),
                  "free or choose another disk");
  }
}

std::uint64_t LogWriter::rows() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->rows_;
}

std::uint64_t LogWriter::bytes() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->bytes_;
}

std::size_t LogWriter::held_back() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->held_rows_;
}

}  // namespace rtmeter
