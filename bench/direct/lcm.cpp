// The smallest round trip over LCM: udpm at its default group, lcm_handle() in a loop. Nobody tells who is
// there: pings that are not counted go first, until one comes back.
#include <lcm/lcm.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "ping_pong.hpp"

namespace {

constexpr char kUrl[] = "udpm://239.255.76.67:7667?ttl=0";
constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};

struct Message {
  std::uint64_t number;
  std::uint8_t payload[direct::kPayload];
} __attribute__((packed));

struct End {
  lcm_t* lcm = lcm_create(kUrl);
  direct::Trips* trips = nullptr;  // of the ping's end
  std::atomic<bool> heard{false};
};

void answer(const lcm_recv_buf_t* received, const char* /*channel*/, void* end) {
  lcm_publish(static_cast<End*>(end)->lcm, "direct-pong", received->data, received->data_size);
}

void came(const lcm_recv_buf_t* received, const char* /*channel*/, void* user) {
  auto* end = static_cast<End*>(user);
  std::uint64_t number = 0;
  std::memcpy(&number, received->data, sizeof number);
  if (number == kNotCounted) {
    end->heard = true;
  } else {
    end->trips->came(number);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const direct::Plan plan = direct::plan(argc, argv);
  End end;
  if (end.lcm == nullptr) return std::fprintf(stderr, "no LCM at %s\n", kUrl), 1;
  direct::Trips trips(plan);
  end.trips = &trips;
  lcm_subscribe(end.lcm, plan.is_ping ? "direct-pong" : "direct-ping", plan.is_ping ? came : answer, &end);
  const auto handle = [&] {
    for (;;) lcm_handle(end.lcm);
  };
  if (!plan.is_ping) handle();
  std::thread(handle).detach();
  Message message{kNotCounted, {}};
  const auto send = [&](std::uint64_t number) {
    message.number = number;
    lcm_publish(end.lcm, "direct-ping", &message, sizeof message);
  };
  while (!end.heard) {
    send(kNotCounted);
    usleep(10000);
  }
  trips.ping(send);
}
