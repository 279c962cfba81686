// The smallest round trip over eCAL: shared memory, which it takes by itself on one host, or UDP; no
// handshake, one file; callbacks, since its subscribers have nothing else. Both ends end eCAL: its files in
// /dev/shm would stay.
#include <ecal/ecal.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "ping_pong.hpp"

namespace {

constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};

struct Message {
  std::uint64_t number;
  std::uint8_t payload[direct::kPayload];
} __attribute__((packed));

}  // namespace

int main(int argc, char** argv) {
  const direct::Plan plan = direct::plan(argc, argv);
  sigset_t asked_to_end;
  sigemptyset(&asked_to_end);
  sigaddset(&asked_to_end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &asked_to_end, nullptr);  // also in eCAL's threads
  const char* name = plan.is_ping ? "direct_ping" : "direct_pong";
  if (!eCAL::Initialize(name)) return std::fprintf(stderr, "eCAL does not start\n"), 1;
  std::at_quick_exit([] { eCAL::Finalize(); });

  using Received = eCAL::SReceiveCallbackData;
  using Type = eCAL::SDataTypeInformation;
  auto publishing = eCAL::GetPublisherConfiguration();
  const char* transport = std::getenv("DIRECT_TRANSPORT");
  if (transport != nullptr && std::strcmp(transport, "udp") == 0)
    publishing.layer.shm.enable = publishing.layer.tcp.enable = false;
  eCAL::CPublisher publisher(name, Type(), publishing);
  eCAL::CSubscriber subscriber(plan.is_ping ? "direct_pong" : "direct_ping");
  if (!plan.is_ping) {
    subscriber.SetReceiveCallback([&](const eCAL::STopicId&, const Type&, const Received& received) {
      publisher.Send(received.buffer, received.buffer_size);
    });
    int number = 0;
    sigwait(&asked_to_end, &number);
    std::quick_exit(0);
  }
  direct::Trips trips(plan);
  std::atomic<bool> heard{false};
  subscriber.SetReceiveCallback([&](const eCAL::STopicId&, const Type&, const Received& received) {
    std::uint64_t number = 0;
    std::memcpy(&number, received.buffer, sizeof number);
    if (number == kNotCounted) {
      heard = true;
    } else {
      trips.came(number);
    }
  });
  Message message{kNotCounted, {}};
  const auto send = [&](std::uint64_t number) {
    message.number = number;
    publisher.Send(&message, sizeof message);
  };
  while (!heard) {  // each end hears of the other within seconds, and not at the same time
    send(kNotCounted);
    usleep(10000);
  }
  trips.ping(send);
}
