// rtmeter/loop.h for C++14 and later: a loop that closes itself, and options by name.
// SPDX-License-Identifier: Apache-2.0
//
//   rtmeter::OwnLoop loop("arm", std::chrono::milliseconds(1));
//   while (running) {
//     loop.sleep();
//     control();
//     loop.done();
//   }
//   loop.close();  // says by an exception what could not be written; the destructor says nothing
#ifndef RTMETER_LOOP_HPP
#define RTMETER_LOOP_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "rtmeter/loop.h"

namespace rtmeter {

struct OwnLoopOptions {
  std::string folder = "results";
  std::chrono::nanoseconds deadline{0}, warm_up{0}, whole{0};  // 0: the default
  double miss_ratio = 0.0;
  std::int64_t late_bytes = 0;
  bool catch_up = false, trace_marker = false, break_trace = false;
  // Called by the loop's thread: k, release and stamp in ns. It must not throw.
  std::function<void(std::int64_t, std::int64_t, std::int64_t)> on_late;
};

class OwnLoop {
 public:
  // Throws std::runtime_error with what is wrong and what helps.
  OwnLoop(const std::string& name, std::chrono::nanoseconds period, OwnLoopOptions options = {})
      : on_late_(options.on_late ? std::make_unique<OnLate>(std::move(options.on_late)) : nullptr) {
    for (const std::string& text : {name, options.folder})  // which would end there
      if (text.find('\0') != std::string::npos) throw std::runtime_error("a NUL byte is in " + text);
    rtm_loop_options o = RTM_LOOP_OPTIONS;
    o.folder = options.folder.c_str();
    o.deadline_ns = options.deadline.count();
    o.miss_ratio = options.miss_ratio;
    o.warm_up_ns = options.warm_up.count();
    o.whole_ns = options.whole.count();
    o.late_bytes = options.late_bytes;
    o.flags = (options.catch_up ? std::uint32_t{RTM_LOOP_CATCH_UP} : 0u) |
              (options.trace_marker ? std::uint32_t{RTM_LOOP_TRACE_MARKER} : 0u) |
              (options.break_trace ? std::uint32_t{RTM_LOOP_BREAK_TRACE} : 0u);
    o.on_late = on_late_ ? &OwnLoop::call : nullptr;
    o.context = on_late_.get();
    char error[1024] = "";
    loop_ = rtm_loop_open(name.c_str(), period.count(), &o, error, sizeof error);
    if (loop_ == nullptr) throw std::runtime_error(error);
  }
  ~OwnLoop() { rtm_loop_close(loop_, nullptr, 0); }
  OwnLoop(OwnLoop&& other) noexcept
      : on_late_(std::move(other.on_late_)), loop_(std::exchange(other.loop_, nullptr)) {}
  OwnLoop& operator=(OwnLoop&& other) noexcept {
    std::swap(on_late_, other.on_late_);
    std::swap(loop_, other.loop_);
    return *this;
  }
  OwnLoop(const OwnLoop&) = delete;
  OwnLoop& operator=(const OwnLoop&) = delete;

  // Sleeps until the next release, stamps the wake-up, and returns the release in ns.
  std::int64_t sleep() noexcept { return rtm_loop_sleep(loop_); }
  // Stamps a wake-up from a sleep until due_ns of CLOCK_MONOTONIC.
  void wake(std::int64_t due_ns = RTM_LOOP_DUE_UNKNOWN) noexcept { rtm_loop_wake(loop_, due_ns); }
  void wake(std::chrono::steady_clock::time_point due) noexcept {
    wake(std::chrono::duration_cast<std::chrono::nanoseconds>(due.time_since_epoch()).count());
  }
  void done() noexcept { rtm_loop_done(loop_); }

  // Writes what is left. Throws std::runtime_error if something could not be written.
  void close() {
    char error[1024] = "";
    if (rtm_loop_close(std::exchange(loop_, nullptr), error, sizeof error) != 0)
      throw std::runtime_error(error);
  }

 private:
  using OnLate = std::function<void(std::int64_t, std::int64_t, std::int64_t)>;
  static void call(void* context, std::int64_t k, std::int64_t release_ns, std::int64_t stamp_ns) {
    (*static_cast<OnLate*>(context))(k, release_ns, stamp_ns);
  }

  std::unique_ptr<OnLate> on_late_;
  rtm_loop* loop_ = nullptr;
};

}  // namespace rtmeter
#endif
