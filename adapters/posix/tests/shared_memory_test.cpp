// Shared memory: what lies in it and who may share it.
#include <sys/mman.h>

#include <fstream>

#include "echo.hpp"
#include "mapping.hpp"
#include "ring.hpp"
#include "rtmeter/event_count.hpp"
#include "system.hpp"

namespace rtmeter_posix {
namespace {

TEST(Ring, KeepsOrderAcrossTheEndOfItsCounters) {
  constexpr std::size_t kBytes = 16;
  const Mapping memory(Ring::size_of(kBytes));
  // As if 2^32 - 5 messages had come and gone: `written` and `taken` start the two first cache lines.
  const std::uint32_t gone = UINT32_MAX - 4;
  memcpy(memory.data(), &gone, sizeof gone);
  memcpy(memory.data() + 64, &gone, sizeof gone);
  Ring writer(memory.data(), kBytes), reader(memory.data(), kBytes);
  const std::uint32_t slots = Ring::slots_for(kBytes);
  for (std::uint64_t k = 0; k < slots; ++k) {
    const auto data = pattern(kBytes, k);
    ASSERT_TRUE(writer.put({k, data.data(), kBytes})) << k;
  }
  EXPECT_FALSE(writer.put({99, pattern(kBytes, 99).data(), kBytes})) << "full";
  for (std::uint64_t k = 0; k < slots; ++k)
    ASSERT_TRUE(reader.take([k](const rtm_message& m) {
      EXPECT_EQ(m.sequence, k);
      EXPECT_EQ(memcmp(m.data, pattern(kBytes, k).data(), kBytes), 0);
    }));
  EXPECT_TRUE(reader.empty());
  EXPECT_FALSE(writer.put({1, pattern(kBytes + 1, 1).data(), kBytes + 1})) << "too long";
}

TEST(Ring, DoesNotBelieveALengthThatCannotBe) {
  const Mapping memory(Ring::size_of(16));
  Ring ring(memory.data(), 16);
  ASSERT_TRUE(ring.put({1, pattern(16, 1).data(), 16}));
  const std::uint32_t forged = 1 << 30;
  memcpy(memory.data() + 128 + 8, &forged, sizeof forged);
  EXPECT_FALSE(ring.take([](const rtm_message&) { FAIL() << "a message of a GiB"; }));
  EXPECT_TRUE(ring.empty());
}

TEST(Ring, HoldsFewLargeOrManySmallMessages) {
  EXPECT_EQ(Ring::slots_for(8), 256U);
  EXPECT_EQ(Ring::slots_for(16 << 20), 4U);
}

TEST(EventCount, NoEventIsMissed) {
  rtmeter::ThreadEventCount events[2]{};
  std::atomic<int> turns{0};
  const auto play = [&](int me) {
    while (turns.load() < 20000) {
      const std::uint32_t ticket = events[me].ticket();
      if (turns.load() % 2 != me) {
        events[me].wait(ticket, kNever);
        continue;
      }
      turns.fetch_add(1);
      events[1 - me].notify();
    }
    events[1 - me].notify();
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  EXPECT_GE(turns.load(), 20000);
}

TEST(SharedMemory, CarriesSixteenMebibytesAndNamesThatLimit) {
  constexpr std::uint32_t kLimit = 16 << 20;
  EchoServer server(asked_roundtrip(RTM_ROLE_SERVER, "shm_futex", kLimit));
  ASSERT_TRUE(server.instance().started()) << server.instance().error().message;
  server.start();
  EchoClient client(client_of(server, "shm_futex", kLimit));
  for (std::uint64_t k = 0; k < 5; ++k) EXPECT_TRUE(client.ask(k));
  const Instance refused(asked_roundtrip(RTM_ROLE_SERVER, "shm_futex", kLimit + 1));
  ASSERT_FALSE(refused.started());
  EXPECT_STREQ(refused.error().field, "payload_bytes");
  EXPECT_STREQ(refused.error().value, "16777217");
  EXPECT_NE(std::string(refused.error().message).find("16777216"), std::string::npos);
  EXPECT_STRNE(refused.error().remedy, "");
}

TEST(SharedMemory, OneClientAtATimeAndTheNextStartsAfresh) {
  EchoServer server(asked_roundtrip(RTM_ROLE_SERVER, "shm_futex"));
  {
    EchoClient first(client_of(server, "shm_futex"));
    const Instance second(client_of(server, "shm_futex"));
    ASSERT_FALSE(second.started());
    EXPECT_STREQ(second.error().message, "another client uses this server");
    ASSERT_EQ(first.send(1, 500), 0);
    while (server.heard() < 1) ASSERT_EQ(server.instance().spin_some(), 0);
  }
  EchoClient next(client_of(server, "shm_futex"));
  ASSERT_TRUE(next.instance().started()) << next.instance().error().message;
  EXPECT_EQ(next.instance().spin_some(), 0);
  EXPECT_EQ(next.heard(), 0U) << "the reply to the first client";
  server.start();
  EXPECT_TRUE(next.ask(2));
}

TEST(SharedMemory, ClientSaysWhatIsWrongWithItsEndpoint) {
  EchoServer server(asked_roundtrip(RTM_ROLE_SERVER, "shm_futex"));
  const std::string file = ::testing::TempDir() + "rtmeter-shm-" + std::to_string(getpid());
  std::ofstream(file) << "somebody's file";
  const int unsealed = memfd_create("unsealed", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(unsealed, 1 << 20), 0);
  const std::string nobodys = "/proc/self/fd/" + std::to_string(unsealed);
  const std::pair<std::string, const char*> cases[] = {
      {"", "a client needs its server's shared memory"},
      {"/proc/1/fd/9999", "cannot open it"},
      {file, "this is not the shared memory of a server"},
      {nobodys, "this is not the shared memory of a server"}};
  for (const auto& [endpoint, message] : cases) {
    Asked asked = asked_roundtrip(RTM_ROLE_CLIENT, "shm_futex");
    if (!endpoint.empty()) asked.options.emplace_back("endpoint", endpoint);
    const Instance refused(asked);
    ASSERT_FALSE(refused.started()) << endpoint;
    EXPECT_STREQ(refused.error().field, "option endpoint");
    EXPECT_EQ(std::string(refused.error().message).rfind(message, 0), 0U) << refused.error().message;
  }
  close(unsealed);
  unlink(file.c_str());

  const Instance other_transport(client_of(server, "shm_poll"));
  ASSERT_FALSE(other_transport.started());
  EXPECT_STREQ(other_transport.error().message, "the server has the other shared-memory transport");
  const Instance larger(client_of(server, "shm_futex", 501));
  ASSERT_FALSE(larger.started());
  EXPECT_STREQ(larger.error().field, "payload_bytes");
  EXPECT_STREQ(larger.error().message, "this server carries at most 500 bytes of payload");
}

}  // namespace
}  // namespace rtmeter_posix
