// A stretch of mapped memory, every page present.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace rtmeter_posix {

class Mapping {
 public:
  Mapping() = default;
  // fd -1: memory of this process alone. bool() is false if it could not be mapped.
  explicit Mapping(std::size_t bytes, int fd = -1) noexcept : bytes_(bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return;
    data_ = static_cast<std::uint8_t*>(memory);
    touch();
  }
  Mapping(Mapping&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  explicit operator bool() const noexcept { return data_ != nullptr; }
  std::uint8_t* data() const noexcept { return data_; }

 private:
  // Writes each page without changing it, also while another process writes there: no page fault is
  // left for the measured path.
  void touch() noexcept {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    for (std::size_t at = 0; at < bytes_; at += page)
      reinterpret_cast<std::atomic<std::uint8_t>*>(data_ + at)->fetch_or(0);
  }

  std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rtmeter_posix
