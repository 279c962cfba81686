// What the smallest direct programs share: pacing, counting, printing. No real-time settings: chrt, taskset.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <time.h>

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
  mlockall(MCL_CURRENT | MCL_FUTURE);
  return plan;
}

inline std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// Sends number n by send(n), a period apart, and waits for it by receive(n): whether it came. Prints, when
// all is done, a line for each that came: its number and its round trip in nanoseconds.
template <typename Send, typename Receive>
int ping(const Plan& plan, Send&& send, Receive&& receive) {
  std::vector<std::int64_t> trips(plan.pings, -1);
  const std::int64_t start = now_ns();
  for (std::size_t n = 0; n < plan.pings; ++n) {
    const std::int64_t release = start + static_cast<std::int64_t>(n + 1) * plan.period_ns;
    const timespec until{release / 1000000000, release % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    const std::int64_t sent = now_ns();
    send(n);
    if (receive(n)) trips[n] = now_ns() - sent;
  }
  for (std::size_t n = 0; n < plan.pings; ++n)
    if (trips[n] >= 0) std::printf("%zu %lld\n", n, static_cast<long long>(trips[n]));
  return 0;
}

}  // namespace direct
