// Names of threads in what tells two runs apart.
#include "../threads.hpp"

#include <gtest/gtest.h>

namespace rtmeter_common {
namespace {

TEST(ThreadNames, OfAReceiverHoldNoPort) {
  EXPECT_EQ(without_port("dds.udp.7412"), "dds.udp.PORT");
  EXPECT_EQ(without_port("dds.shm.23663"), "dds.shm.PORT");
  EXPECT_EQ(without_port("dds.tcp.5"), "dds.tcp.PORT");
}

TEST(ThreadNames, OfOthersAreAsTheyAre) {
  for (const char* name : {"", "recv", "dds.ev.0", "dds.asyn.0.0", "dds.shm.wdog", "dds.udp.",
                           "dds.udp.7412x", "dds.tcp_accept", "my.dds.udp.7412", "dds.udp"})
    EXPECT_EQ(without_port(name), name);
}

}  // namespace
}  // namespace rtmeter_common
