#include "service_thread.hpp"

#include <sched.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "errors.hpp"

namespace rtmeter {
namespace {

cpu_set_t every_cpu_but(const std::vector<int>& avoided) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &cpus);
  for (const int cpu : avoided)
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_CLR(cpu, &cpus);
  return cpus;  // the kernel takes out those that do not exist or are not allowed
}

}  // namespace

ServiceThread::ServiceThread(const std::string& name, const std::vector<int>& avoid_cpus,
                             std::function<void()> body, std::size_t stack_bytes)
    : body_(std::move(body)) {
  const sched_param normal{};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
  pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
  pthread_attr_setschedparam(&attributes, &normal);

  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited
  const int error = pthread_create(&thread_, &attributes, &ServiceThread::enter, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0)
    throw Failure("thread", name, std::string("cannot be created: ") + std::strerror(error),
                  "raise the limit of processes (ulimit -u) or free memory");
  pthread_setname_np(thread_, name.c_str());
  const cpu_set_t cpus = every_cpu_but(avoid_cpus);
  // Where only the avoided CPUs are left this fails, and the thread shares them.
  pthread_setaffinity_np(thread_, sizeof cpus, &cpus);
  tid_.wait(0, std::memory_order_acquire);  // blocks: a real-time creator that yields would not let it run
}

ServiceThread::~ServiceThread() { pthread_join(thread_, nullptr); }

void* ServiceThread::enter(void* self) {
  auto* thread = static_cast<ServiceThread*>(self);
  thread->tid_.store(static_cast<int>(gettid()), std::memory_order_release);
  thread->tid_.notify_one();
  thread->body_();
  return nullptr;
}

}  // namespace rtmeter
