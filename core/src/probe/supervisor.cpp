#include "probe/supervisor.hpp"

#include <chrono>
#include <csignal>
#include <ctime>
#include <initializer_list>

namespace rtmeter {
namespace {

constexpr auto kTick = std::chrono::milliseconds(50);
constexpr int kTicksPerProgress = 5;
constexpr int kWake = SIGUSR1;  // ends the measured thread's sleep once stop is set

std::int64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

void Supervisor::block_signals() {
  const sigset_t ending = ending_signals();
  sigset_t let_through;
  sigemptyset(&let_through);
  for (const int s : {kWake, SIGALRM}) sigaddset(&let_through, s);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &let_through, nullptr);  // whoever started the probe may have blocked them
  struct sigaction wake{};
  wake.sa_handler = [](int) {};
  sigaction(kWake, &wake, nullptr);
  std::signal(SIGALRM, SIG_DFL);  // the last resort where even giving up hangs
  std::signal(SIGPIPE, SIG_IGN);
}

Supervisor::Supervisor(Duties duties, const std::vector<int>& avoid_cpus)
    : duties_(std::move(duties)), measured_(pthread_self()) {
  thread_ = std::make_unique<ServiceThread>("rtm-supervisor", avoid_cpus, [this] { run(); });
  try {
    guard_ = std::make_unique<Guard>(duties_.watch_stdin, avoid_cpus,
                                     std::vector<int>{thread_->tid(), duties_.writer_tid},
                                     [this] { duties_.stop.store(true); });
  } catch (...) {
    end();  // the thread that runs already is joined
    throw;
  }
  heard_by_.store(guard_.get());
}

Supervisor::~Supervisor() { end(); }

void Supervisor::end() noexcept {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  done_changed_.notify_one();
  thread_.reset();
}

void Supervisor::run() {
  std::unique_lock lock(mutex_);
  for (int n = 0; !done_; ++n) {
    lock.unlock();
    if (Guard* guard = heard_by_.load()) {
      guard->alive();
      duties_.rescues.store(guard->rescues());
    }
    tick();
    if (n % kTicksPerProgress == 0) duties_.progress();
    lock.lock();
    done_changed_.wait_for(lock, kTick, [this] { return done_; });
  }
}

void Supervisor::tick() {
  const std::int64_t now_ns = monotonic_ns();
  const bool stopping = duties_.stop.load(), ending = ending_.load();
  const std::uint64_t settled = duties_.settled();
  if (stopping && (stopping_since_ns_ == 0 || settled != settled_)) stopping_since_ns_ = now_ns;
  settled_ = settled;
  if (ending && ending_since_ns_ == 0) ending_since_ns_ = now_ns;
  if (stopping && !ending) {
    // Again and again: the first may come just before the measured thread falls asleep.
    duties_.interrupt();
    pthread_kill(measured_, kWake);
  } else if (!ending && now_ns >= duties_.watchdog.load(std::memory_order_relaxed)) {
    duties_.interrupt();
  }
  const bool given_up = ending ? now_ns - ending_since_ns_ > (stopping ? kPatienceNs : kFarewellNs)
                               : stopping && now_ns - stopping_since_ns_ > kPatienceNs;
  if (given_up) duties_.give_up();
}

}  // namespace rtmeter
