// The smallest round trip over iceoryx: queues of one, the oldest discarded, wait-sets. iox-roudi must run.
#include <unistd.h>

#include <cstring>
#include <thread>

#include "iceoryx_posh/popo/untyped_publisher.hpp"
#include "iceoryx_posh/popo/untyped_subscriber.hpp"
#include "iceoryx_posh/popo/wait_set.hpp"
#include "iceoryx_posh/runtime/posh_runtime.hpp"
#include "ping_pong.hpp"

namespace {
struct Head {
  std::uint64_t number;
  std::uint32_t bytes;
};
constexpr std::uint32_t kHead = 16;
}  // namespace

int main(int argc, char** argv) {
  const direct::Plan plan = direct::plan(argc, argv);
  iox::runtime::PoshRuntime::initRuntime(plan.is_ping ? "direct-ping" : "direct-pong");
  iox::popo::SubscriberOptions newest;
  newest.queueCapacity = 1;
  const iox::capro::ServiceDescription there{"direct", "bench", "ping"}, back{"direct", "bench", "pong"};
  iox::popo::UntypedPublisher publisher(plan.is_ping ? there : back);
  iox::popo::UntypedSubscriber subscriber(plan.is_ping ? back : there, newest);
  iox::popo::WaitSet<> wait;
  wait.attachState(subscriber, iox::popo::SubscriberState::HAS_DATA).or_else([](auto) { std::abort(); });

  const auto send = [&](std::uint64_t number, const std::uint8_t* payload) {
    publisher.loan(kHead + direct::kPayload).and_then([&](void* chunk) {
      const Head head{number, direct::kPayload};
      std::memcpy(chunk, &head, sizeof head);
      std::memcpy(static_cast<std::uint8_t*>(chunk) + kHead, payload, direct::kPayload);
      publisher.publish(chunk);
    });
  };
  if (!plan.is_ping) {
    for (;;) {
      wait.wait();
      subscriber.take().and_then([&](const void* chunk) {
        send(static_cast<const Head*>(chunk)->number, static_cast<const std::uint8_t*>(chunk) + kHead);
        subscriber.release(chunk);
      });
    }
  }
  while (!publisher.hasSubscribers() || subscriber.getSubscriptionState() != iox::SubscribeState::SUBSCRIBED)
    usleep(1000);
  usleep(500000);  // the other side may be a little later
  const std::uint8_t payload[direct::kPayload] = {};
  direct::Trips trips(plan);
  std::thread([&] {
    for (;;) {
      wait.wait();
      subscriber.take().and_then([&](const void* chunk) {
        trips.came(static_cast<const Head*>(chunk)->number);
        subscriber.release(chunk);
      });
    }
  }).detach();
  trips.ping([&](std::size_t n) { send(n, payload); });
}
