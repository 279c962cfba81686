// Where a message lies that the iceoryx adapter sent, and where its receiver, another process, is given it:
// the file that is mapped there and the offset in it, a line each.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "iceoryx_hoofs/error_handling/error_handling.hpp"
#include "iceoryx_posh/popo/untyped_publisher.hpp"
#include "iceoryx_posh/popo/untyped_subscriber.hpp"
#include "iceoryx_posh/popo/user_trigger.hpp"
#include "iceoryx_posh/popo/wait_set.hpp"
#include "iceoryx_posh/runtime/node.hpp"
#include "iceoryx_posh/runtime/posh_runtime.hpp"
#include "roudi.hpp"
#include "rtmeter/adapter.hpp"

static void* written_to = nullptr;  // by the adapter, last

namespace std {
inline void* noted_memcpy(void* to, const void* from, std::size_t bytes) {
  written_to = to;
  return memcpy(to, from, bytes);
}
}  // namespace std

#undef RTMETER_ADAPTER_MAIN
#define RTMETER_ADAPTER_MAIN(AdapterClass)
#define memcpy noted_memcpy
#include "iceoryx.cpp"
#undef memcpy

namespace rtmeter_iceoryx {
namespace {

void print_place(const char* who, const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, offset = 0, inode = 0;
    char access[8], device[16], name[256] = "";
    std::sscanf(line.c_str(), "%lx-%lx %7s %lx %15s %lu %255s", &begin, &end, access, &offset, device, &inode,
                name);
    if (begin <= at && at < end) std::printf("%s %s %lu %lu\n", who, name, inode, at - begin + offset);
  }
  std::fflush(stdout);
}

void received(void* user, const rtm_message* message) {
  print_place("received", message->data);
  *static_cast<bool*>(user) = true;
}

int run(std::uint32_t bytes, const char* session) {
  rtm_run asked{};
  asked.measurement = RTM_ROUNDTRIP;
  asked.drive = RTM_POLL;
  asked.payload_bytes = bytes;
  asked.reliability = RTM_RELIABLE;
  asked.history_depth = 4;
  asked.session = session;
  const Roudi started(kPayload + bytes);  // before both, which would each start one
  const pid_t receiver = fork();
  if (receiver == 0) {
    {
      Iceoryx adapter(asked);
      bool done = false;
      adapter.create_subscriber(adapter.create_node("receiver"), "topic", &received, &done);
      while (!done) adapter.spin_some();
    }
    std::exit(0);  // with iceoryx's last words, which take its socket away
  }
  Iceoryx adapter(asked);
  auto* publisher = static_cast<Publisher*>(adapter.create_publisher(adapter.create_node("sender"), "topic"));
  while (!publisher->port.hasSubscribers()) usleep(1000);
  const std::vector<std::uint8_t> payload(bytes, 7);
  if (adapter.publish(publisher, rtm_message{1, payload.data(), bytes}) != 0) return 1;
  int status = 0;
  waitpid(receiver, &status, 0);
  print_place("sent", written_to);
  return status;
}

}  // namespace
}  // namespace rtmeter_iceoryx

int main(int, char** argv) { return rtmeter_iceoryx::run(std::stoul(argv[1]), argv[2]); }
