// What counting a send costs: the probe's own send() beside the C library's, in turn, of nothing through a
// pair of sockets. Prints one JSON object of raw costs, ns; bench/send_count.py makes a median of them.
#include <dlfcn.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdio>

#include "json/json.hpp"
#include "rtmeter/clock.hpp"

int main() {
  using namespace rtmeter;
  constexpr int kPairs = 4001, kPerBatch = 100;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return std::perror("socketpair"), 1;
  const std::atomic<bool> never{false};
  MonotonicClock clock{never};
  using Send = decltype(&::send);
  const auto library = reinterpret_cast<Send>(dlsym(RTLD_NEXT, "send"));
  volatile Send sends[] = {library, &::send};
  if (sends[0] == sends[1]) return std::fputs("sends are not counted in this program\n", stderr), 1;
  Json costs = Json::object();
  for (int i = 0; i < 2 * kPairs; ++i) {
    const int which = (i + i / 2) % 2;  // either first in turn
    const Send send = sends[which];
    const std::int64_t begin_ns = clock.now_ns();
    for (int j = 0; j < kPerBatch; ++j) send(ends[0], "", 0, MSG_NOSIGNAL);
    costs[which == 0 ? "library" : "counted"].push(static_cast<double>(clock.now_ns() - begin_ns) /
                                                   kPerBatch);
  }
  std::puts(costs.dump().c_str());
  return 0;
}
