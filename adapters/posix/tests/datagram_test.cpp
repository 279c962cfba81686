// UDP and Unix datagrams: addresses, limits, and strangers who send to the same socket.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fstream>

#include "address.hpp"
#include "echo.hpp"
#include "system.hpp"
#include "wire.hpp"

namespace rtmeter_posix {
namespace {

TEST(Address, ReadsAndWritesTheSame) {
  for (const char* text : {"127.0.0.1:7400", "0.0.0.0:0", "[::1]:65535", "[::]:0"})
    EXPECT_EQ(to_string(ip_address(text, "field")), text);
  EXPECT_EQ(to_string(ip_address("127.0.0.1", "field")), "127.0.0.1:0");
  EXPECT_EQ(to_string(ip_address("::1", "field")), "[::1]:0");
  EXPECT_EQ(port_of(ip_address("[::1]:81", "field")), 81);
  for (const char* text : {"/tmp/a.socket", "@abstract", "@a/b c"})
    EXPECT_EQ(to_string(unix_address(text, "field")), text);
  EXPECT_EQ(to_string(unix_address("@" + std::string(106, 'x'), "field")), "@" + std::string(106, 'x'));
}

TEST(Address, RefusesWhatIsNone) {
  for (const char* text : {"", ":1", "localhost:1", "1.2.3:4:5", "1.2.3.4:", "1.2.3.4:x", "1.2.3.4:65536",
                           "1.2.3.4:-1", "1.2.3.4:1 ", "1.2.3.256:1", "[::1", "[::1]1", "[::1]:", "[]:1"})
    try {
      const Address address = ip_address(text, "option address");
      ADD_FAILURE() << "'" << text << "' was read as " << to_string(address);
    } catch (const rtmeter::SetupError& error) {
      EXPECT_EQ(error.field(), "option address");
      EXPECT_EQ(error.value(), text);
      EXPECT_NE(error.remedy(), "");
    }
  for (const std::string& text : {std::string(), std::string("@"), std::string("/"), std::string("a.socket"),
                                  "/" + std::string(107, 'x')})
    EXPECT_THROW(unix_address(text, "field"), rtmeter::SetupError) << text;
}

TEST(Udp, ServerTakesAGivenAddressAndChoosesAPort) {
  Asked asked = asked_roundtrip(RTM_ROLE_SERVER, "udp");
  asked.options.emplace_back("address", "127.0.0.2");
  EchoServer server(asked);
  ASSERT_TRUE(server.instance().started()) << server.instance().error().message;
  EXPECT_EQ(server.endpoint().rfind("127.0.0.2:", 0), 0U);
  EXPECT_NE(port_of(ip_address(server.endpoint(), "endpoint")), 0);
  server.start();
  Asked client_asked = asked_roundtrip(RTM_ROLE_CLIENT, "udp");
  client_asked.options.emplace_back("address", server.endpoint());  // instead of endpoint
  EchoClient client(client_asked);
  EXPECT_TRUE(client.ask(1));

  asked.options.back().second = server.endpoint();
  const Instance taken(asked);
  ASSERT_FALSE(taken.started());
  EXPECT_STREQ(taken.error().field, "option address");
  EXPECT_EQ(taken.error().value, server.endpoint());
}

// Counts stamps of each end, which must lie between a reading of the same clock before and one now.
struct Stamped {
  std::int64_t before_ns = realtime_ns();
  std::atomic<int> seen[2] = {0, 0};

  static std::int64_t realtime_ns() {
    timespec t{};
    clock_gettime(CLOCK_REALTIME, &t);
    return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
  }
  static void on_stamp(void* user, rtm_end end, std::int64_t at_ns) {
    auto* self = static_cast<Stamped*>(user);
    ++self->seen[end];
    EXPECT_GE(at_ns, self->before_ns);
    EXPECT_LE(at_ns, realtime_ns());
  }
};

TEST(Udp, TellsWhenTheKernelHadEachMessage) {
#ifdef RTMETER_EMULATED
  GTEST_SKIP() << "qemu does not hand the kernel's stamps on";
#endif
  for (const char* address : {"127.0.0.1", "::1"}) {
    Stamped at_server, at_client;
    Asked asked = asked_roundtrip(RTM_ROLE_SERVER, "udp");
    asked.options.emplace_back("address", address);
    EchoServer server(asked, &Stamped::on_stamp, &at_server);
    if (!server.instance().started() && std::string(address) == "::1") GTEST_SKIP() << "no IPv6 here";
    server.start();
    EchoClient client(client_of(server, "udp"), &Stamped::on_stamp, &at_client);
    // The kernel stamps what is received from soon after it is asked to on, in a thread of its own.
    const auto begun = [](const Stamped& one) {
      return one.seen[RTM_PUBLISHER] > 0 && one.seen[RTM_SUBSCRIBER] > 0;
    };
    for (int more = 1'000'000; more > 0 && !(begun(at_server) && begun(at_client)); --more)
      ASSERT_TRUE(client.ask(0));
    server.stop();  // the reply has come before the server tells its stamp
    server.start();
    for (auto* one : {&at_server, &at_client})
      for (auto& count : one->seen) count = 0;
    for (std::uint64_t k = 1; k <= 50; ++k) {
      at_client.before_ns = Stamped::realtime_ns();
      ASSERT_TRUE(client.ask(k));
      EXPECT_EQ(at_client.seen[RTM_PUBLISHER], static_cast<int>(k));
      EXPECT_EQ(at_client.seen[RTM_SUBSCRIBER], static_cast<int>(k));
    }
    server.stop();
    EXPECT_EQ(at_server.seen[RTM_PUBLISHER], 50);
    EXPECT_EQ(at_server.seen[RTM_SUBSCRIBER], 50);
  }
}

TEST(Unix, HasNoStampsOfTheKernel) {
  Instance instance(asked_roundtrip(RTM_ROLE_SERVER, "unix"));
  ASSERT_TRUE(instance.started()) << instance.error().message;
  ASSERT_FALSE(instance.tell_stamps(instance.node(), &Stamped::on_stamp, nullptr));
  EXPECT_STREQ(instance.error().field, "kernel_stamps");
  EXPECT_NE(std::string(instance.error().remedy).find("transport=udp"), std::string::npos);
}

TEST(Udp, SpeaksIPv6) {
  Asked asked = asked_roundtrip(RTM_ROLE_SERVER, "udp");
  asked.options.emplace_back("address", "::1");
  EchoServer server(asked);
  if (!server.instance().started()) GTEST_SKIP() << "no IPv6 here: " << server.instance().error().message;
  EXPECT_EQ(server.endpoint().rfind("[::1]:", 0), 0U);
  server.start();
  EchoClient client(client_of(server, "udp"));
  EXPECT_TRUE(client.ask(1));
}

TEST(Udp, ClientSaysWhatIsWrongWithItsEndpoint) {
  for (const Options& given : {Options{}, Options{{"endpoint", "127.0.0.1"}},
                               Options{{"endpoint", "nowhere:1"}}, Options{{"address", "127.0.0.1"}}}) {
    Asked asked = asked_roundtrip(RTM_ROLE_CLIENT, "udp");
    asked.options.insert(asked.options.end(), given.begin(), given.end());
    const Instance refused(asked);
    ASSERT_FALSE(refused.started());
    EXPECT_EQ(refused.error().field, "option " + (given.empty() ? "endpoint" : given[0].first));
    EXPECT_NE(std::string(refused.error().remedy).find("IP:port"), std::string::npos);
  }
}

TEST(Udp, CarriesUpToItsLimitAndNamesIt) {
  constexpr std::uint32_t kLimit = 65507 - sizeof(WireHeader);
  EchoServer server(asked_roundtrip(RTM_ROLE_SERVER, "udp", kLimit));
  ASSERT_TRUE(server.instance().started());
  server.start();
  EchoClient client(client_of(server, "udp", kLimit));
  for (std::uint64_t k = 0; k < 5; ++k) EXPECT_TRUE(client.ask(k));
  const Instance refused(asked_roundtrip(RTM_ROLE_SERVER, "udp", kLimit + 1));
  ASSERT_FALSE(refused.started());
  EXPECT_STREQ(refused.error().field, "payload_bytes");
  EXPECT_STREQ(refused.error().value, "65484");
  EXPECT_NE(std::string(refused.error().message).find("65483"), std::string::npos);
  EXPECT_STREQ(refused.error().remedy, "choose a smaller payload, or transport=shm_futex");
  const Instance large(asked_roundtrip(RTM_ROLE_SERVER, "udp", (16U << 20U) + 1));
  ASSERT_FALSE(large.started());
  EXPECT_STREQ(large.error().remedy, "choose a smaller payload")
      << "shared memory carries no more than 16 MiB";
}

TEST(Udp, ClassOfTrafficIsSetAndReadBack) {
  for (const char* address : {"127.0.0.1", "::1"}) {
    Asked asked = asked_roundtrip(RTM_ROLE_SERVER, "udp");
    asked.options.emplace_back("address", address);
    asked.options.emplace_back("dscp", "46");
    asked.options.emplace_back("priority", "5");
    const Instance instance(asked);
    if (!instance.started() && std::string(address) == "::1") GTEST_SKIP() << "no IPv6 here";
    ASSERT_TRUE(instance.started()) << instance.error().message;
    EXPECT_EQ(instance.described().at("qos.dscp"), "46");
    EXPECT_EQ(instance.described().at("qos.priority"), "5");
  }
  const Instance plain(asked_roundtrip(RTM_ROLE_SERVER, "udp"));
  EXPECT_EQ(plain.described().at("qos.dscp"), "0");
  EXPECT_EQ(plain.described().at("qos.priority"), "0");
}

TEST(Udp, PacketsCarryTheirDscp) {
  const Fd receiver(socket(AF_INET, SOCK_DGRAM, 0));
  Address here = ip_address("127.0.0.1:0", "here");
  ASSERT_EQ(bind(receiver.get(), here.get(), here.length), 0);
  const int on = 1;
  ASSERT_EQ(setsockopt(receiver.get(), IPPROTO_IP, IP_RECVTOS, &on, sizeof on), 0);
  Asked asked = asked_roundtrip(RTM_ROLE_CLIENT, "udp");
  asked.options.emplace_back("endpoint", to_string(bound_address(receiver.get())));
  asked.options.emplace_back("dscp", "46");
  EchoClient client(asked);
  ASSERT_TRUE(client.instance().started()) << client.instance().error().message;
  ASSERT_EQ(client.send(1, 100), 0);
  char data[2048], control[64];
  iovec part{data, sizeof data};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ASSERT_GT(recvmsg(receiver.get(), &message, 0), 0);
  const cmsghdr* tos = CMSG_FIRSTHDR(&message);
  ASSERT_NE(tos, nullptr);
  ASSERT_EQ(tos->cmsg_type, IP_TOS);
  EXPECT_EQ(*CMSG_DATA(tos) >> 2, 46);
}

TEST(Udp, ClassOfTrafficThatIsNoneIsRefused) {
  for (const Options& given : {Options{{"dscp", "64"}}, Options{{"dscp", "-1"}}, Options{{"dscp", "ef"}},
                               Options{{"priority", "16"}}, Options{{"priority", "6 "}}}) {
    Asked asked = asked_roundtrip(RTM_ROLE_SERVER, "udp");
    asked.options.insert(asked.options.end(), given.begin(), given.end());
    const Instance refused(asked);
    ASSERT_FALSE(refused.started());
    EXPECT_EQ(refused.error().field, "option " + given[0].first);
    EXPECT_EQ(refused.error().value, given[0].second);
    EXPECT_NE(std::string(refused.error().remedy), "");
  }
}

TEST(Udp, IsNotReliable) {
  Asked asked = asked_roundtrip(RTM_ROLE_SERVER, "udp");
  asked.reliability = RTM_RELIABLE;
  const Instance refused(asked);
  ASSERT_FALSE(refused.started());
  EXPECT_STREQ(refused.error().field, "reliability");
}

TEST(Unix, CarriesUpToItsSendBufferAndNamesTheLimit) {
  const Instance refused(asked_roundtrip(RTM_ROLE_SERVER, "unix", 64 << 20));
  ASSERT_FALSE(refused.started());
  EXPECT_STREQ(refused.error().field, "payload_bytes");
  EXPECT_STREQ(refused.error().value, "67108864");
  EXPECT_STRNE(refused.error().remedy, "");
  unsigned long limit = 0;
  ASSERT_EQ(sscanf(refused.error().message, "a Unix datagram carries at most %lu bytes", &limit), 1)
      << refused.error().message;
  // Linux cannot always find that much memory in one piece, but a tenth of it.
  const auto bytes = static_cast<std::uint32_t>(limit / 10);
  EchoServer server(asked_roundtrip(RTM_ROLE_SERVER, "unix", bytes));
  ASSERT_TRUE(server.instance().started()) << server.instance().error().message;
  server.start();
  EchoClient client(client_of(server, "unix", bytes));
  for (std::uint64_t k = 0; k < 5; ++k) EXPECT_TRUE(client.ask(k));
}

TEST(Unix, RemovesItsPathAndReplacesOneThatAKilledServerLeft) {
  const std::string path = ::testing::TempDir() + "rtmeter-unix-" + std::to_string(getpid());
  Asked asked = asked_roundtrip(RTM_ROLE_SERVER, "unix");
  asked.options.emplace_back("address", path);
  struct stat found{};
  {
    // What kill -9 leaves: the file of a socket that is closed.
    const Fd left(socket(AF_UNIX, SOCK_DGRAM, 0));
    const Address address = unix_address(path, "path");
    ASSERT_EQ(bind(left.get(), address.get(), address.length), 0);
  }
  EchoServer server(asked);
  ASSERT_TRUE(server.instance().started()) << server.instance().error().message;
  EXPECT_EQ(server.endpoint(), path);
  server.start();
  EchoClient client(client_of(server, "unix"));
  EXPECT_TRUE(client.ask(1));

  const Instance second(asked);
  EXPECT_FALSE(second.started()) << "the first one listens there";
  EXPECT_TRUE(client.ask(2));
  server.stop();
  server.instance().stop();
  EXPECT_NE(stat(path.c_str(), &found), 0);

  std::ofstream(path) << "somebody's file";
  const Instance refused(asked);
  EXPECT_FALSE(refused.started());
  EXPECT_STREQ(refused.error().field, "option address");
  EXPECT_EQ(stat(path.c_str(), &found), 0) << "no file but a dead socket is removed";
  unlink(path.c_str());
}

TEST(UnixStream, ReplacesAPathThatAKilledServerLeftAndNoOther) {
  const std::string path = ::testing::TempDir() + "rtmeter-stream-" + std::to_string(getpid());
  Asked asked = asked_roundtrip(RTM_ROLE_SERVER, "udp");
  asked.measurement = RTM_REQUEST;
  asked.options = {{"stream", "unix"}, {"address", path}};
  {
    const Fd left(socket(AF_UNIX, SOCK_STREAM, 0));
    const Address address = unix_address(path, "path");
    ASSERT_EQ(bind(left.get(), address.get(), address.length), 0);
  }
  Instance server(asked);
  ASSERT_TRUE(server.started()) << server.error().message;
  const Instance second(asked);
  EXPECT_FALSE(second.started()) << "the first one listens there";
  server.stop();
  std::ofstream(path) << "somebody's file";
  const Instance refused(asked);
  EXPECT_FALSE(refused.started());
  struct stat found{};
  EXPECT_EQ(stat(path.c_str(), &found), 0) << "no file but a dead socket is removed";
  unlink(path.c_str());
}

TEST(Unix, FindsAServerThatStartsLater) {
  const Asked server_asked = asked_roundtrip(RTM_ROLE_SERVER, "unix");
  EchoClient client(asked_roundtrip(RTM_ROLE_CLIENT, "unix"));  // by the session's name
  ASSERT_TRUE(client.instance().started()) << client.instance().error().message;
  EXPECT_NE(client.send(1, 500), 0);
  EchoServer server(server_asked);
  server.start();
  EXPECT_TRUE(client.ask(2));
}

// A raw socket of somebody who is not of this run.
class Stranger {
 public:
  explicit Stranger(const std::string& to)
      : to_(to.front() == '@' ? unix_address(to, "to") : ip_address(to, "to")),
        socket_(socket(to_.family(), SOCK_DGRAM, 0)) {}
  void send(const std::vector<std::uint8_t>& datagram) {
    ASSERT_EQ(sendto(socket_.get(), datagram.data(), datagram.size(), 0, to_.get(), to_.length),
              static_cast<ssize_t>(datagram.size()))
        << strerror(errno);
  }

 private:
  const Address to_;
  const Fd socket_;
};

std::vector<std::uint8_t> datagram(const WireHeader& header, std::size_t payload_bytes) {
  std::vector<std::uint8_t> bytes(sizeof header + payload_bytes);
  memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

class StrangerTest : public ::testing::TestWithParam<const char*> {};

TEST_P(StrangerTest, WhatIsNoMessageOfThisRunIsIgnored) {
  const Asked asked = asked_roundtrip(RTM_ROLE_SERVER, GetParam());
  EchoServer server(asked);
  ASSERT_TRUE(server.instance().started());
  EchoClient client(client_of(server, GetParam()));
  ASSERT_EQ(client.send(1, 500), 0);
  while (client.heard() < 1) {
    ASSERT_EQ(server.instance().wait(kSecondNs), 0);
    ASSERT_EQ(client.instance().wait(kSecondNs), 0);
  }

  const std::uint64_t tag = tag_of(asked.session + "/ping");
  WireHeader wrong_magic = to_wire(tag, 2, 500);
  wrong_magic.magic ^= 1;
  Stranger stranger(server.endpoint());
  const std::vector<std::vector<std::uint8_t>> nonsense = {
      {},                                                   // empty
      {1, 2, 3},                                            // shorter than a header
      datagram(to_wire(tag, 2, 500), 499),                  // cut
      datagram(to_wire(tag, 2, 500), 501),                  // too long by one
      datagram(to_wire(tag, 2, 60000), 60000),              // longer than this run's payload
      datagram(to_wire(tag, 2, UINT32_MAX), 500),           // a length that wraps
      datagram(wrong_magic, 500),                           // another protocol
      datagram(to_wire(tag ^ 1, 2, 500), 500),              // another session or topic
      datagram(to_wire(tag_of("x/ping"), 2, 500), 500)};
  for (const auto& bytes : nonsense) {
    stranger.send(bytes);
    ASSERT_EQ(server.instance().spin_some(), 0);
    if (std::string(GetParam()) == "udp") {  // a Unix client's socket takes from its server only
      Stranger(client.instance().described().at("local_address")).send(bytes);
      ASSERT_EQ(client.instance().spin_some(), 0);
    }
  }
  EXPECT_EQ(server.heard(), 1U);
  EXPECT_EQ(client.heard(), 1U);
  // The server still answers its client, not the stranger.
  server.start();
  EXPECT_TRUE(client.ask(3));
}

INSTANTIATE_TEST_SUITE_P(Transports, StrangerTest, ::testing::Values("udp", "unix"),
                         [](const auto& transport) { return std::string(transport.param); });

TEST(Udp, ClientHearsItsServerOnly) {
  const Asked asked = asked_roundtrip(RTM_ROLE_SERVER, "udp");
  EchoServer server(asked);
  EchoClient client(client_of(server, "udp"));
  Stranger forger(client.instance().described().at("local_address"));
  forger.send(datagram(to_wire(tag_of(asked.session + "/pong"), 7, 500), 500));
  server.start();
  EXPECT_TRUE(client.ask(1)) << "the forged one was there first";
  EXPECT_EQ(client.heard(), 1U);
}

}  // namespace
}  // namespace rtmeter_posix
