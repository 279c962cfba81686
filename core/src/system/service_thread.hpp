// A thread beside the measured one: normal priority whatever its creator has, small stack, signals
// blocked; from its first instruction on CPUs that the user gave the process, but not the measured
// thread's where others are left.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace rtmeter {

// Those given that are not avoided; if none is left, those given.
std::vector<int> service_cpus(const std::vector<int>& given, const std::vector<int>& avoided);

class ServiceThread {
 public:
  static constexpr std::size_t kSmallStack = 256 << 10;  // mlockall takes all of it

  // Throws Failure if the thread cannot be created. Name: at most 15 characters.
  ServiceThread(const std::string& name, const std::vector<int>& avoid_cpus, std::function<void()> body,
                std::size_t stack_bytes = kSmallStack);
  ~ServiceThread();  // joins
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;

  // Waits for its end. Idempotent. Who is joined may be listed in /proc for a moment more, by the same tid().
  void join() noexcept;
  int tid() const noexcept { return tid_; }
  // Threads that it creates have its name of that moment, unless they take another.
  void rename(const char* name) noexcept { pthread_setname_np(thread_, name); }

 private:
  static void* enter(void* self);

  std::function<void()> body_;
  pthread_t thread_{};
  std::atomic<int> tid_{0};
  bool joined_ = false;
};

}  // namespace rtmeter
