#include "system/deadline_overruns.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rtmeter {
namespace {

sigset_t overrun_signal() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXCPU);
  return set;
}

}  // namespace

DeadlineOverruns::DeadlineOverruns(const std::vector<int>& avoid_cpus)
    : thread_("rtm-overruns", avoid_cpus, [this] { accept(); }) {
  const sigset_t set = overrun_signal();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

DeadlineOverruns::~DeadlineOverruns() {
  done_.store(true);
  syscall(SYS_tgkill, getpid(), thread_.tid(), SIGXCPU);
}

void DeadlineOverruns::accept() noexcept {
  const sigset_t set = overrun_signal();
  while (!done_.load()) {
    siginfo_t info;
    if (sigwaitinfo(&set, &info) == SIGXCPU && info.si_code == SI_KERNEL) count_.fetch_add(1);
  }
}

}  // namespace rtmeter
