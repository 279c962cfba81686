#include "supervisor.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <initializer_list>

namespace rtmeter {
namespace {

constexpr int kTickMs = 50;
constexpr int kTicksPerProgress = 5;
constexpr int kWake = SIGUSR1;  // ends the measured thread's sleep once stop is set

std::int64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : signals) sigaddset(&set, s);
  return set;
}

sigset_t ending_signals() { return set_of({SIGINT, SIGTERM, SIGHUP}); }

}  // namespace

void Supervisor::block_signals() {
  const sigset_t ending = ending_signals(), waking = set_of({kWake});
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &waking, nullptr);  // whoever started the probe may have blocked it
  struct sigaction wake{};
  wake.sa_handler = [](int) {};
  sigaction(kWake, &wake, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

Supervisor::Supervisor(Duties duties, const std::vector<int>& avoid_cpus)
    : duties_(std::move(duties)), measured_(pthread_self()) {
  thread_ = std::make_unique<ServiceThread>("rtm-supervisor", avoid_cpus, [this] { run(); });
}

Supervisor::~Supervisor() {
  done_.store(true);
  thread_.reset();
}

void Supervisor::run() {
  const sigset_t set = ending_signals();
  const int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  for (int n = 0; !done_.load(std::memory_order_relaxed); ++n) {
    if (requested(signals)) duties_.stop.store(true);
    tick();
    if (n % kTicksPerProgress == 0) duties_.progress();
  }
  close(signals);
}

bool Supervisor::requested(int signals) {
  pollfd fds[] = {{signals, POLLIN, 0}, {duties_.watch_stdin && stdin_open_ ? STDIN_FILENO : -1, POLLIN, 0}};
  if (poll(fds, 2, kTickMs) <= 0) return false;
  bool stop = false;
  if ((fds[0].revents & POLLIN) != 0) {
    signalfd_siginfo info{};
    stop = read(signals, &info, sizeof info) == sizeof info;
  }
  if ((fds[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
    char ignored[64];
    if (read(STDIN_FILENO, ignored, sizeof ignored) <= 0) {
      stdin_open_ = false;
      stop = true;
    }
  }
  return stop;
}

void Supervisor::tick() {
  if (duties_.stop.load()) {
    // Again and again: the first may come just before the measured thread falls asleep.
    duties_.interrupt();
    pthread_kill(measured_, kWake);
    if (stopping_since_ns_ == 0) stopping_since_ns_ = monotonic_ns();
    if (monotonic_ns() - stopping_since_ns_ > kPatienceNs) duties_.give_up();
  } else if (monotonic_ns() >= duties_.watchdog.load(std::memory_order_relaxed)) {
    duties_.interrupt();
  }
}

}  // namespace rtmeter
