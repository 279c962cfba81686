#include "system/service_thread.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "errors.hpp"
#include "system/affinity.hpp"

namespace rtmeter {
namespace {

// What the user gave the process (taskset, cpuset): asked for when its first service thread starts, before
// it sets an affinity of its own.
const std::vector<int>& given_cpus() {
  static const std::vector<int> cpus = get_affinity(0);
  return cpus;
}

}  // namespace

std::vector<int> service_cpus(const std::vector<int>& given, const std::vector<int>& avoided) {
  std::vector<int> left;
  for (const int cpu : given)
    if (std::find(avoided.begin(), avoided.end(), cpu) == avoided.end()) left.push_back(cpu);
  return left.empty() ? given : left;
}

ServiceThread::ServiceThread(const std::string& name, const std::vector<int>& avoid_cpus,
                             std::function<void()> body, std::size_t stack_bytes)
    : body_(std::move(body)) {
  const CpuMask cpus = mask_of(service_cpus(given_cpus(), avoid_cpus));
  const sched_param normal{};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
  pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
  pthread_attr_setschedparam(&attributes, &normal);
  pthread_attr_setaffinity_np(&attributes, sizeof cpus, cpus.data());

  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited
  const int error = pthread_create(&thread_, &attributes, &ServiceThread::enter, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error == EAGAIN && sched_getscheduler(0) == SCHED_DEADLINE)  // and no SCHED_RESET_ON_FORK beside it
    throw Failure("thread", name,
                  "cannot be created: the kernel lets a thread of SCHED_DEADLINE start no other",
                  "set SCHED_FLAG_RESET_ON_FORK along with that policy, or open the loop before it");
  if (error != 0)
    throw Failure("thread", name, std::string("cannot be created: ") + std::strerror(error),
                  "raise the limit of processes (ulimit -u) or free memory");
  pthread_setname_np(thread_, name.c_str());
  tid_.wait(0, std::memory_order_acquire);  // blocks: a real-time creator that yields would not let it run
}

ServiceThread::~ServiceThread() { join(); }

void ServiceThread::join() noexcept {
  if (!joined_) pthread_join(thread_, nullptr);
  joined_ = true;
}

void* ServiceThread::enter(void* self) {
  auto* thread = static_cast<ServiceThread*>(self);
  thread->tid_.store(static_cast<int>(gettid()), std::memory_order_release);
  thread->tid_.notify_one();
  thread->body_();
  return nullptr;
}

}  // namespace rtmeter
