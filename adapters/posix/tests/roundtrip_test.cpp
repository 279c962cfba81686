// What all transports have in common: they echo, they say what they cannot carry, they can be ended, and
// they leave nothing behind.
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "echo.hpp"

namespace rtmeter_posix {
namespace {

class RoundTripTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RoundTripTest, EchoesEverySizeUnchanged) {
  EchoServer server(asked_roundtrip(RTM_ROLE_SERVER, GetParam(), 60000));
  ASSERT_TRUE(server.instance().started()) << server.instance().error().message;
  server.start();
  EchoClient client(client_of(server, GetParam(), 60000));
  ASSERT_TRUE(client.instance().started()) << client.instance().error().message;
  std::uint64_t sequence = 0;
  for (const std::uint32_t bytes : {8U, 9U, 63U, 64U, 65U, 500U, 1472U, 60000U})
    for (int n = 0; n < 20; ++n) ASSERT_TRUE(client.ask(sequence++, bytes)) << bytes << " bytes";
  ASSERT_TRUE(client.ask(RTM_SEQUENCE_HELLO)) << "any sequence number travels";
  EXPECT_EQ(server.heard(), sequence + 1);
}

TEST_P(RoundTripTest, RefusesAMessageLongerThanWasSaid) {
  EchoServer server(asked_roundtrip(RTM_ROLE_SERVER, GetParam(), 100));
  server.start();
  EchoClient client(client_of(server, GetParam(), 100));
  EXPECT_NE(client.send(1, 101), 0);
  EXPECT_TRUE(client.ask(2, 100));
  EXPECT_EQ(server.heard(), 1U);
}

TEST_P(RoundTripTest, SpinSomeDispatchesWhatIsThereAndDoesNotBlock) {
  EchoServer server(asked_roundtrip(RTM_ROLE_SERVER, GetParam()));
  EchoClient client(client_of(server, GetParam()));
  EXPECT_EQ(client.instance().spin_some(), 0);
  for (std::uint64_t k = 0; k < 3; ++k) ASSERT_EQ(client.send(k, 500), 0);
  while (server.heard() < 3) ASSERT_EQ(server.instance().spin_some(), 0);
  while (client.heard() < 3) ASSERT_EQ(client.instance().spin_some(), 0);
  EXPECT_EQ(server.instance().spin_some(), 0);
  EXPECT_EQ(server.heard(), 3U);
}

TEST_P(RoundTripTest, WaitEndsAfterOneMessageAndWhenTheTimeIsOver) {
  EchoServer server(asked_roundtrip(RTM_ROLE_SERVER, GetParam()));
  EchoClient client(client_of(server, GetParam()));
  EXPECT_EQ(client.instance().wait(1'000'000), 0);
  EXPECT_EQ(client.instance().wait(0), 0);
  EXPECT_EQ(client.heard(), 0U);
  for (std::uint64_t k = 0; k < 3; ++k) ASSERT_EQ(client.send(k, 500), 0);
  for (std::uint64_t n = 1; n <= 3; ++n) {
    while (server.heard() < n) ASSERT_EQ(server.instance().wait(60 * kSecondNs), 0);
    EXPECT_EQ(server.heard(), n);
  }
}

TEST_P(RoundTripTest, InterruptEndsOneSpinFromAnotherThreadAndBeforehand) {
  EchoServer server(asked_roundtrip(RTM_ROLE_SERVER, GetParam()));
  Instance& instance = server.instance();
  instance.interrupt();
  EXPECT_EQ(instance.spin(INT64_MAX), 0);
  for (int n = 0; n < 20; ++n) {
    std::thread other([&instance] { instance.interrupt(); });
    EXPECT_EQ(n % 2 == 0 ? instance.spin(INT64_MAX) : instance.wait(INT64_MAX), 0);
    other.join();
  }
  std::thread later([&instance] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    instance.interrupt();
  });
  EXPECT_EQ(instance.spin(-1), 0);
  later.join();
}

// UDP drops at the receiver instead.
class QueueTest : public ::testing::TestWithParam<const char*> {};

TEST_P(QueueTest, RefusesWhatDoesNotFitAnymoreWithoutBlocking) {
  EchoServer server(asked_roundtrip(RTM_ROLE_SERVER, GetParam()));
  EchoClient client(client_of(server, GetParam()));
  std::uint64_t sent = 0;
  while (sent < 100000 && client.send(sent, 500) == 0) ++sent;
  EXPECT_LT(sent, 100000U);
  EXPECT_GT(sent, 3U);
  while (server.heard() < sent) {
    ASSERT_EQ(server.instance().spin_some(), 0);
    ASSERT_EQ(client.instance().spin_some(), 0);
  }
  EXPECT_EQ(server.heard(), sent) << "what was taken is delivered, once";
}

TEST_P(RoundTripTest, TellsAnotherSessionApart) {
  EchoServer server(asked_roundtrip(RTM_ROLE_SERVER, GetParam()));
  server.start();
  Asked asked = client_of(server, GetParam());
  asked.session += "-another";
  EchoClient stranger(asked);
  if (stranger.instance().started()) {
    EXPECT_EQ(stranger.send(1, 500), 0);
  } else {
    EXPECT_STREQ(stranger.instance().error().message, "the server belongs to another session");
  }
  EchoClient client(client_of(server, GetParam()));
  EXPECT_TRUE(client.ask(2));
  EXPECT_EQ(server.heard(), 1U);
}

// What a process has open by a name that would outlast it.
std::vector<std::string> named_files(pid_t process) {
  std::vector<std::string> named;
  const std::string folder = "/proc/" + std::to_string(process) + "/fd";
  DIR* directory = opendir(folder.c_str());
  while (const dirent* entry = directory == nullptr ? nullptr : readdir(directory)) {
    if (atoi(entry->d_name) <= STDERR_FILENO) continue;
    char target[PATH_MAX] = "";
    if (readlink((folder + "/" + entry->d_name).c_str(), target, sizeof target - 1) < 0) continue;
    const std::string file = target;
    if (file.front() == '/' && file.rfind("/memfd:", 0) != 0 && file.rfind("/proc/", 0) != 0 &&
        file != "/dev/null")
      named.push_back(file);
  }
  if (directory != nullptr) closedir(directory);
  std::sort(named.begin(), named.end());
  return named;
}

TEST_P(RoundTripTest, EchoesBetweenProcessesAndOutlivesAKilledServer) {
  const auto inherited = named_files(getpid());
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const Asked asked = asked_roundtrip(RTM_ROLE_SERVER, GetParam());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    EchoServer server(asked);
    const std::string endpoint = server.endpoint();
    if (write(ready[1], endpoint.c_str(), endpoint.size()) > 0) server.serve();
    _exit(1);
  }
  char endpoint[128] = "";
  ASSERT_GT(read(ready[0], endpoint, sizeof endpoint - 1), 0);
  Asked client_asked = asked_roundtrip(RTM_ROLE_CLIENT, GetParam());
  client_asked.options.emplace_back("endpoint", endpoint);
  EchoClient client(client_asked);
  ASSERT_TRUE(client.instance().started()) << client.instance().error().message;
  for (std::uint64_t k = 0; k < 50; ++k) ASSERT_TRUE(client.ask(k));
  EXPECT_EQ(named_files(child), inherited);

  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  for (std::uint64_t k = 50; k < 1500; ++k) {
    client.send(k, 500);  // taken or refused, but at once
    EXPECT_EQ(client.instance().spin_some(), 0);
  }
  EXPECT_EQ(client.instance().wait(1'000'000), 0);
  EXPECT_EQ(client.heard(), 50U);
}

INSTANTIATE_TEST_SUITE_P(Transports, RoundTripTest, ::testing::Values("udp", "unix", "shm_futex", "shm_poll"),
                         [](const auto& transport) { return std::string(transport.param); });

INSTANTIATE_TEST_SUITE_P(Transports, QueueTest, ::testing::Values("unix", "shm_futex", "shm_poll"),
                         [](const auto& transport) { return std::string(transport.param); });

TEST(RoundTripSetup, RefusesAnUnknownTransport) {
  const Instance refused(asked_roundtrip(RTM_ROLE_SERVER, "pigeon"));
  ASSERT_FALSE(refused.started());
  EXPECT_STREQ(refused.error().field, "option transport");
  EXPECT_STREQ(refused.error().remedy, "choose one of udp, unix, shm_futex, shm_poll, topics");
}

}  // namespace
}  // namespace rtmeter_posix
