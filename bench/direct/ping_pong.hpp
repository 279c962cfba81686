// What the smallest direct programs share: pacing, counting, printing. No real-time settings: chrt, taskset.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace direct {

constexpr std::uint32_t kPayload = 500;  // bytes

struct Plan {
  bool is_ping = false;
  std::int64_t period_ns = 0;
  std::size_t pings = 0;
  std::FILE* rows = nullptr;  // the standard output; what a middleware says there goes to the standard error
};

// PROGRAM pong, or PROGRAM ping PERIOD_NS PINGS
inline Plan plan(int argc, char** argv) {
  Plan plan;
  plan.is_ping = argc == 4 && std::strcmp(argv[1], "ping") == 0;
  if (!plan.is_ping && !(argc == 2 && std::strcmp(argv[1], "pong") == 0)) {
    std::fprintf(stderr, "usage: %s pong | ping PERIOD_NS PINGS\n", argv[0]);
    std::exit(1);
  }
  if (plan.is_ping) {
    plan.period_ns = std::atoll(argv[2]);
    plan.pings = static_cast<std::size_t>(std::atoll(argv[3]));
  }
  plan.rows = fdopen(dup(STDOUT_FILENO), "w");
  dup2(STDERR_FILENO, STDOUT_FILENO);
  mlockall(MCL_CURRENT | MCL_FUTURE);
  return plan;
}

inline std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// Round trips of a thread that sends while another one spins, as rtmeter's receive=spin has it.
class Trips {
 public:
  explicit Trips(const Plan& plan) : plan_(plan), sent_(plan.pings), trips_(plan.pings) {
    for (auto& trip : trips_) trip.store(-1);
  }

  // First thing in the middleware's callback, or after taking: number n came back.
  void came(std::uint64_t n) {
    const std::int64_t now = now_ns();
    if (n < plan_.pings) trips_[n].store(now - sent_[n].load(), std::memory_order_release);
  }

  // Sends number n by send(n), a period apart; while one is under way, and not lost, passes releases over.
  // Prints, when all is done, a line for each that came: its number and its round trip in nanoseconds. Ends
  // the process: the other thread spins on.
  template <typename Send>
  [[noreturn]] void ping(Send&& send) {
    constexpr std::int64_t kLost = 500000000;
    const std::int64_t start = now_ns();
    std::size_t under_way = plan_.pings;
    for (std::size_t n = 0; n < plan_.pings; ++n) {
      const std::int64_t release = start + static_cast<std::int64_t>(n + 1) * plan_.period_ns;
      const timespec until{release / 1000000000, release % 1000000000};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
      const std::int64_t sent = now_ns();
      if (under_way < n && trips_[under_way].load(std::memory_order_acquire) < 0 &&
          sent - sent_[under_way].load() < kLost)
        continue;
      sent_[n].store(sent);
      send(n);
      under_way = n;
    }
    usleep(kLost / 1000);
    for (std::size_t n = 0; n < plan_.pings; ++n)
      if (trips_[n].load() >= 0)
        std::fprintf(plan_.rows, "%zu %lld\n", n, static_cast<long long>(trips_[n].load()));
    std::fflush(nullptr);
    std::quick_exit(0);
  }

 private:
  const Plan plan_;
  std::vector<std::atomic<std::int64_t>> sent_, trips_;
};

}  // namespace direct
