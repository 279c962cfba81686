// What the files of this adapter share of Linux: descriptors, errors, clock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "rtmeter/adapter.hpp"

namespace rtmeter_posix {

inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kNever = INT64_MAX;

// The error of a system call that failed just now, in the words of the system.
inline rtmeter::SetupError system_error(const std::string& field, const std::string& value,
                                        const std::string& call, const std::string& remedy) {
  return rtmeter::SetupError(field, value, call + ": " + std::strerror(errno), remedy);
}

// A file descriptor, closed at the end; -1 is none.
class Fd {
 public:
  explicit Fd(int fd = -1) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

// CLOCK_MONOTONIC, to know what is due; nothing is measured by it. No system call (vDSO).
inline std::int64_t now_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * kSecond + t.tv_nsec;
}

inline timespec to_timespec(std::int64_t ns) noexcept {
  timespec t{};
  t.tv_sec = static_cast<time_t>(ns / kSecond);
  t.tv_nsec = static_cast<long>(ns % kSecond);
  return t;
}

// A relative timeout as a moment; negative ones and those beyond the clock mean never.
inline std::int64_t deadline_after(std::int64_t timeout_ns) noexcept {
  if (timeout_ns < 0) return kNever;
  const std::int64_t now = now_ns();
  return timeout_ns < kNever - now ? now + timeout_ns : kNever;
}

// The time left until a moment, 0 when it has passed; kNever stays kNever.
inline std::int64_t time_left(std::int64_t deadline_ns) noexcept {
  if (deadline_ns == kNever) return kNever;
  const std::int64_t left = deadline_ns - now_ns();
  return left > 0 ? left : 0;
}

// A relative timeout for calls that take NULL as "no timeout".
class Timeout {
 public:
  explicit Timeout(std::int64_t ns) noexcept : spec_(to_timespec(ns)), none_(ns == kNever) {}
  const timespec* get() const noexcept { return none_ ? nullptr : &spec_; }

 private:
  timespec spec_;
  bool none_;
};

inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace rtmeter_posix
