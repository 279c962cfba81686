// The way that messages took, told by what went through sockets.
#include "system/path.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <thread>
#include <vector>

namespace rtmeter {
namespace {

Sends since(const SendsByWire& before, Wire wire) {
  const SendsByWire now = sends_so_far();
  const auto i = static_cast<std::size_t>(wire);
  return {now[i].calls - before[i].calls, now[i].bytes - before[i].bytes};
}

// The address at which the socket hears what it is sent.
sockaddr_in bound_to_itself(int udp) {
  sockaddr_in self{};
  self.sin_family = AF_INET;
  self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(bind(udp, reinterpret_cast<sockaddr*>(&self), sizeof self), 0);
  socklen_t size = sizeof self;
  EXPECT_EQ(getsockname(udp, reinterpret_cast<sockaddr*>(&self), &size), 0);
  return self;
}

TEST(Sends, AreCountedBySocketKindWhateverTheCall) {
  int unix_ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, unix_ends), 0);
  const int udp = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in self = bound_to_itself(udp);
  const SendsByWire before = sends_so_far();

  char data[100] = "";
  iovec part{data, 30};
  mmsghdr messages[2]{};
  for (mmsghdr& one : messages) {
    one.msg_hdr.msg_iov = &part;
    one.msg_hdr.msg_iovlen = 1;
    one.msg_hdr.msg_name = &self;
    one.msg_hdr.msg_namelen = sizeof self;
  }
  EXPECT_EQ(send(unix_ends[0], data, 7, 0), 7);
  EXPECT_EQ(sendto(udp, data, 100, 0, reinterpret_cast<sockaddr*>(&self), sizeof self), 100);
  EXPECT_EQ(sendmsg(udp, &messages[0].msg_hdr, 0), 30);
  EXPECT_EQ(sendmmsg(udp, messages, 2, 0), 2);
  const iovec parts[] = {{data, 10}, {data, 3}};
  EXPECT_EQ(write(unix_ends[0], data, 5), 5);
  EXPECT_EQ(writev(unix_ends[0], parts, 2), 13);
  const int file = open("/dev/null", O_WRONLY);
  EXPECT_EQ(write(file, data, 50), 50);          // no socket
  close(file);
  EXPECT_EQ(send(-1, data, 1, 0), -1);           // refused: nothing was sent
  EXPECT_LT(sendto(udp, data, 100, 0, nullptr, 0), 0);

  EXPECT_EQ(since(before, Wire::unix_).calls, 3u);
  EXPECT_EQ(since(before, Wire::unix_).bytes, 25u);
  EXPECT_EQ(since(before, Wire::udp).calls, 4u);
  EXPECT_EQ(since(before, Wire::udp).bytes, 190u);
  EXPECT_EQ(since(before, Wire::tcp).calls, 0u);
  for (const int fd : {udp, unix_ends[0], unix_ends[1]}) close(fd);
}

TEST(Sends, ThroughASocketThatIsClosedSinceAreCountedIfItWasLookedAt) {
  const int udp = fcntl(socket(AF_INET, SOCK_DGRAM, 0), F_DUPFD, 900);  // of nobody before
  sockaddr_in self = bound_to_itself(udp);
  const SendsByWire before = sends_so_far();
  EXPECT_EQ(sendto(udp, "abc", 3, 0, reinterpret_cast<sockaddr*>(&self), sizeof self), 3);
  look_at_sockets();
  close(udp);
  EXPECT_EQ(since(before, Wire::udp).calls, 1u);
  EXPECT_EQ(since(before, Wire::udp).bytes, 3u);
}

TEST(Sends, OfTwoThreadsThroughOneSocketAreAllCounted) {
  constexpr std::uint64_t kEach = 200'000;
  const int udp = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in self = bound_to_itself(udp);
  const SendsByWire before = sends_so_far();

  std::array<std::uint64_t, 2> sent{};
  std::vector<std::thread> threads;
  for (std::uint64_t& mine : sent)
    threads.emplace_back([&mine, udp, &self] {
      for (std::uint64_t i = 0; i < kEach; ++i)
        if (sendto(udp, "", 1, 0, reinterpret_cast<sockaddr*>(&self), sizeof self) == 1) ++mine;
    });
  for (std::thread& one : threads) one.join();

  EXPECT_GT(sent[0] + sent[1], kEach);
  EXPECT_EQ(since(before, Wire::udp).calls, sent[0] + sent[1]);
  EXPECT_EQ(since(before, Wire::udp).bytes, sent[0] + sent[1]);
  close(udp);
}

SendsByWire udp(std::uint64_t calls, std::uint64_t bytes) {
  SendsByWire sent{};
  sent[static_cast<std::size_t>(Wire::udp)] = {calls, bytes};
  return sent;
}

TEST(Path, IsASocketsThatCarriedHalfOfTheMessagesAndOfTheirBytes) {
  EXPECT_EQ(carried_by({100, 1000, false}, udp(100, 106'000), true), "udp");
  EXPECT_EQ(carried_by({100, 1000, false}, udp(50, 50'000), true), "udp");
  EXPECT_EQ(carried_by({100, 1000, false}, udp(49, 106'000), true),
            "shared_memory");   // few, large: not the messages
  EXPECT_EQ(carried_by({100, 1000, false}, udp(100, 49'999), true),
            "shared_memory");  // many, small: heartbeats
  EXPECT_EQ(carried_by({100, 1000, true}, udp(10, 4'000), true), "process");
  EXPECT_EQ(carried_by({100, 1000, false}, udp(10, 4'000), false), "unknown");
  EXPECT_EQ(carried_by({100, 1000, true}, udp(100, 106'000), true), "udp");  // through the network to itself
}

TEST(Path, NamesTheMemoryThatIsSharedForWriting) {
  std::istringstream maps(
      "7f0000000000-7f0000002000 rw-s 00000000 00:19 12 /dev/shm/fastrtps_port7413\n"
      "7f0000010000-7f0000011000 rw-s 00002000 00:19 12 /dev/shm/fastrtps_port7413\n"
      "7f0000020000-7f0000021000 r--s 00000000 00:19 13 /dev/shm/only_read\n"
      "7f0000030000-7f0000031000 rw-p 00000000 00:19 14 /dev/shm/private\n"
      "7f0000040000-7f0000041000 rw-s 00000000 00:01 15 /memfd:pool (deleted)\n"
      "7f0000050000-7f0000051000 rw-p 00000000 00:00 0\n");
  const Json files = shared_files(maps);
  ASSERT_EQ(files.as_array().size(), 2u);
  const auto is = [&](std::size_t i, const char* name, std::int64_t bytes) {
    EXPECT_EQ(files.as_array()[i].find("name")->as_string(), name);
    EXPECT_EQ(files.as_array()[i].find("bytes")->as_int(), bytes);
  };
  is(0, "/dev/shm/fastrtps_port7413", 3 * 4096);
  is(1, "/memfd:pool (deleted)", 4096);
}

TEST(Path, IsUnknownWhereNothingWasPublished) {
  Path path;
  path.begin();
  EXPECT_TRUE(path.to_json({}).is_null());
}

TEST(Path, OfACycleTheTransportIsTheOneInEffect) {
  const Json adapter(Json::Object{{"name", "a"}, {"transport", "udp"}, {"qos", "b"}});
  EXPECT_EQ(within_process(adapter, Json()).dump(), R"({"name":"a","transport_asked":"udp","qos":"b"})");
  const Json path(Json::Object{{"carried_by", "process"}});
  EXPECT_EQ(within_process(adapter, path).dump(),
            R"({"name":"a","transport_asked":"udp","transport":"process","qos":"b"})");
  const Json silent(Json::Object{{"name", "a"}});
  EXPECT_EQ(within_process(silent, path).dump(), R"({"name":"a"})");
}

}  // namespace
}  // namespace rtmeter
