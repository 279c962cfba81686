#include "log/log_writer.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#define ZSTD_STATIC_LINKING_ONLY  // for ZSTD_createCCtx_advanced(), which shared libraries have, too
#include <zstd.h>

#include "errors.hpp"
#include "log/frame_file.hpp"

namespace rtmeter {
namespace {

constexpr std::size_t kMaxColumns = 64;
constexpr std::size_t kFrameRows = 8192;  // the format allows 65,536; fewer keep the buffers small
constexpr int kZstdLevel = 3;             // chosen by measurement: docs/benchmarks.md

// Memory for zstd that is touched at once: which pages it would touch later depends on the data, and a
// process that goes on for hours would grow meanwhile. Not zeros: the compiler would make that a calloc(),
// which touches nothing.
void* touched(void* /*opaque*/, std::size_t bytes) {
  void* memory = std::malloc(bytes);
  return memory == nullptr ? nullptr : std::memset(memory, 1, bytes);
}
void release(void* /*opaque*/, void* memory) { std::free(memory); }

std::size_t column_count(const Json& header, const std::string& path) {
  const Json* columns = header.find("columns");
  const std::size_t count = columns != nullptr && columns->is_array() ? columns->as_array().size() : 0;
  if (count == 0 || count > kMaxColumns) {
    throw Failure("log", path, "a sample log has 1 to 64 columns, not " + std::to_string(count),
                  "list them in the header's \"columns\"");
  }
  return count;
}

std::uint64_t first_row(const Json& header) {
  const Json* first = header.find("first_row");
  return first == nullptr ? 0 : static_cast<std::uint64_t>(first->as_int());
}

}  // namespace

struct LogWriter::Impl {
  Impl(const std::string& path, const Json& header)
      : columns_(column_count(header, path)), rows_(first_row(header)), rows_in_frames_(rows_),
        held_(kFrameRows * columns_), deltas_(kFrameRows), planes_(held_.size() * 8),
        frame_(FrameFile::kHeadBytes + ZSTD_compressBound(planes_.size())),
        zstd_(ZSTD_createCCtx_advanced({touched, release, nullptr}), ZSTD_freeCCtx), file_(path) {
    ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_compressionLevel, kZstdLevel);
    compress(planes_.size());  // a frame of full size makes zstd take its memory now
    try {
      put_json('H', header);
      put_json('H', header);
    } catch (...) {
      unlink(path.c_str());  // without a header the file is of no use, and would be in the next run's way
      throw;
    }
  }

  void append(const std::int64_t* rows, std::size_t count) {
    rows_ += count;
    while (count > 0) {
      if (failure_) throw Failure(*failure_);
      const std::size_t taken = std::min(count, kFrameRows - held_rows_);
      std::copy_n(rows, taken * columns_, held_.data() + held_rows_ * columns_);
      held_rows_ += taken;
      rows += taken * columns_;
      count -= taken;
      if (held_rows_ == kFrameRows) flush();
    }
  }

  void flush() {
    if (failure_) throw Failure(*failure_);
    if (held_rows_ == 0) return;
    for (std::size_t column = 0; column < columns_; ++column) encode(column);
    put('R', rows_in_frames_, held_rows_, compress(held_rows_ * columns_ * 8), frame_);
    rows_in_frames_ += held_rows_;
    held_rows_ = 0;
  }

  void put_json(char kind, const Json& object) {
    const std::string text = object.dump();
    if (text.size() > FrameFile::kMaxPayloadBytes) {
      throw Failure("log", "", "a header or update longer than 16 MiB", "give fewer or shorter options");
    }
    std::vector<std::uint8_t> frame(FrameFile::kHeadBytes + text.size());
    std::copy(text.begin(), text.end(), frame.begin() + FrameFile::kHeadBytes);
    put(kind, rows_, 0, text.size(), frame);
  }

  std::mutex mutex_;
  const std::size_t columns_;
  std::uint64_t rows_;  // k of the next: those before were appended, whether they could be written or not
  std::uint64_t rows_in_frames_;
  std::size_t held_rows_ = 0;  // in held_
  std::vector<std::int64_t> held_;  // rows of the next frame
  std::vector<std::uint64_t> deltas_;  // one column of them, zig-zag coded
  std::vector<std::uint8_t> planes_;
  std::vector<std::uint8_t> frame_;
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> zstd_;
  FrameFile file_;
  std::optional<Failure> failure_;  // from then on no row is written

 private:
  // One column of the rows held back as eight byte planes (spec/sample-log.md).
  void encode(std::size_t column) {
    std::uint64_t previous = 0;
    for (std::size_t row = 0; row < held_rows_; ++row) {
      const auto value = static_cast<std::uint64_t>(held_[row * columns_ + column]);
      const std::uint64_t delta = value - previous;
      deltas_[row] = (delta << 1) ^ (0 - (delta >> 63));
      previous = value;
    }
    std::uint8_t* plane = planes_.data() + column * 8 * held_rows_;
    for (int shift = 0; shift < 64; shift += 8, plane += held_rows_) {
      for (std::size_t row = 0; row < held_rows_; ++row) {
        plane[row] = static_cast<std::uint8_t>(deltas_[row] >> shift);
      }
    }
  }

  // The first `bytes` of planes_ into frame_, behind the room for its head; returns the payload's size.
  std::size_t compress(std::size_t bytes) {
    const std::size_t payload_bytes =
        ZSTD_compress2(zstd_.get(), frame_.data() + FrameFile::kHeadBytes,
                       frame_.size() - FrameFile::kHeadBytes, planes_.data(), bytes);
    if (ZSTD_isError(payload_bytes) == 0) return payload_bytes;
    failure_.emplace("log", "", std::string("zstd failed: ") + ZSTD_getErrorName(payload_bytes),
                     "free memory");
    throw Failure(*failure_);
  }

  void put(char kind, std::uint64_t first_row, std::size_t row_count, std::size_t payload_bytes,
           std::vector<std::uint8_t>& frame) {
    try {
      file_.write(kind, first_row, row_count, payload_bytes, frame);
    } catch (const Failure& failure) {
      failure_ = failure;
      held_rows_ = 0;
      throw;
    }
  }
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

void LogWriter::go_to(std::uint64_t k) {
  const std::lock_guard lock(impl_->mutex_);
  impl_->flush();
  impl_->rows_ = impl_->rows_in_frames_ = k;
}

void LogWriter::update(const Json& object) {
  const std::lock_guard lock(impl_->mutex_);
  impl_->flush();
  impl_->put_json('J', object);
}

void LogWriter::finish(const Json& object) {
  const std::lock_guard lock(impl_->mutex_);
  if (!impl_->failure_) impl_->flush();
  impl_->put_json('E', object);  // after a failure too: if it still fits, it tells how many rows were lost
  impl_->file_.close();
}

std::uint64_t LogWriter::rows() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->rows_;
}

std::uint64_t LogWriter::bytes() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->file_.bytes();
}

std::size_t LogWriter::held_back() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->held_rows_;
}

}  // namespace rtmeter
