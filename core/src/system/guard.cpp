#include "system/guard.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "errors.hpp"
#include "system/limits.hpp"

namespace rtmeter {
namespace {

int signal_file() {
  const sigset_t set = ending_signals();
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Reads what has come; a line "go N" says when the first release is, a later one takes its place.
bool standard_input_closed() {
  char line[64] = "";
  const ssize_t got = read(STDIN_FILENO, line, sizeof line - 1);
  for (const char* at = line; (at = std::strstr(at, "go ")) != nullptr; at += 3)
    told_to_go().store(std::strtoll(at + 3, nullptr, 10), std::memory_order_release);
  return got <= 0;
}

}  // namespace

sigset_t ending_signals() noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGINT, SIGTERM}) sigaddset(&set, s);
  struct sigaction hangup{};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

std::atomic<std::int64_t>& told_to_go() noexcept {
  static std::atomic<std::int64_t> told{0};
  return told;
}

bool put_first(int tid) noexcept {
  const int most = sched_get_priority_max(SCHED_FIFO);
  const auto limit =
      static_cast<int>(std::min(resource_limit(RLIMIT_RTPRIO).value_or(0), static_cast<std::uint64_t>(most)));
  for (const int priority : {most, limit}) {
    const sched_param asked{.sched_priority = priority};
    if (priority > 0 && sched_setscheduler(tid, SCHED_FIFO, &asked) == 0) return true;
  }
  return false;
}

Guard::Guard(bool watch_stdin, const std::vector<int>& avoid_cpus, std::vector<int> helpers,
             std::function<void()> on_request)
    : watch_stdin_(watch_stdin), helpers_(std::move(helpers)), on_request_(std::move(on_request)),
      signals_(signal_file()), starved_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      done_(eventfd(0, EFD_CLOEXEC)) {
  if (signals_ < 0 || starved_ < 0 || done_ < 0)
    throw Failure("files", "rtm-guard",
                  std::string("cannot open what hears signals: ") + std::strerror(errno),
                  "raise the limit of open files (ulimit -n)");
  alive();
  thread_ = std::make_unique<ServiceThread>("rtm-guard", avoid_cpus, [this] { run(); });
  put_first(thread_->tid());  // where no priority is permitted it is as urgent as anyone
}

Guard::~Guard() {
  eventfd_write(done_, 1);
  thread_.reset();
  for (const int file : {signals_, starved_, done_}) close(file);
}

void Guard::alive() noexcept {
  const itimerspec then{{}, {kStarvedNs / 1'000'000'000, 0}};
  timerfd_settime(starved_, 0, &then, nullptr);
  if (!lent_.exchange(false)) return;
  if (!asked_.load()) put_helpers_back();
  if (asked_.load()) put_helpers_first();  // it may have been asked just now
}

void Guard::put_helpers_first() const noexcept {
  for (const int tid : helpers_) put_first(tid);
}

// To what service threads are.
void Guard::put_helpers_back() const noexcept {
  const sched_param normal{.sched_priority = 0};
  for (const int tid : helpers_) sched_setscheduler(tid, SCHED_OTHER, &normal);
}

void Guard::run() {
  pollfd files[] = {{done_, POLLIN, 0},
                    {signals_, POLLIN, 0},
                    {starved_, POLLIN, 0},
                    {watch_stdin_ ? STDIN_FILENO : -1, POLLIN, 0}};
  for (;;) {
    if (poll(files, std::size(files), -1) < 0) continue;  // interrupted: a debugger
    if (files[0].revents != 0) return;
    bool asked = false;
    signalfd_siginfo info{};
    if (files[1].revents != 0) asked = read(signals_, &info, sizeof info) == sizeof info;
    if (files[3].revents != 0 && standard_input_closed()) {
      files[3].fd = -1;
      asked = true;
    }
    std::uint64_t times = 0;
    const bool starved = files[2].revents != 0 && read(starved_, &times, sizeof times) == sizeof times;
    if (asked) asked_.store(true);
    if (asked || starved) put_helpers_first();
    if (starved) {
      lent_.store(true);
      ++rescues_;
    }
    if (asked) on_request_();
  }
}

}  // namespace rtmeter
