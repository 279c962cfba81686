// A thread beside the measured one: normal priority whatever its creator has, small stack, signals
// blocked, on other CPUs than the measured thread's where there are any.
#pragma once

#include <pthread.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace rtmeter {

class ServiceThread {
 public:
  // Throws Failure if the thread cannot be created. Name: at most 15 characters.
  ServiceThread(const std::string& name, const std::vector<int>& avoid_cpus, std::function<void()> body);
  ~ServiceThread();  // joins
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;

  int tid() const noexcept { return tid_; }

 private:
  static void* enter(void* self);

  std::function<void()> body_;
  pthread_t thread_{};
  std::atomic<int> tid_{0};
};

}  // namespace rtmeter
