// What each measurement's rows hold, and what of them is judged.
#include "measure/measurement.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rtmeter {
namespace {

using Names = std::vector<std::string>;

Config config_of(rtm_measurement measurement, rtm_role role, bool kernel_stamps = false) {
  Config config;
  config.measurement = measurement;
  config.role = role;
  config.kernel_stamps = kernel_stamps;
  return config;
}

TEST(Columns, KernelStampsStandBesideThoseOfTheRolesOwn) {
  EXPECT_EQ(columns_of(config_of(RTM_ROUNDTRIP, RTM_ROLE_CLIENT, true)),
            (Names{"release_ns", "sent_ns", "received_ns", "free_ns", "kernel_sent_realtime_ns",
                   "kernel_received_realtime_ns", "status"}));
  EXPECT_EQ(columns_of(config_of(RTM_ROUNDTRIP, RTM_ROLE_SERVER, true)),
            (Names{"sequence", "server_received_ns", "server_sent_ns", "server_kernel_received_realtime_ns",
                   "server_kernel_sent_realtime_ns", "status"}));
  EXPECT_EQ(columns_of(config_of(RTM_ROUNDTRIP, RTM_ROLE_SERVER)),
            (Names{"sequence", "server_received_ns", "server_sent_ns", "status"}));
  EXPECT_EQ(columns_of(config_of(RTM_ROUNDTRIP, RTM_ROLE_BESIDE, true)),
            (Names{"sequence", "received_ns", "status"}));
}

// later - earlier - minus, by the columns' names.
TEST(Judged, IsTheQuantityOfTheMeasurement) {
  struct Case {
    rtm_measurement measurement;
    rtm_role role;
    const char *later, *earlier;
  };
  for (const Case& c : {Case{RTM_WAKEUP, RTM_ROLE_SINGLE, "wake_ns", "release_ns"},
                        Case{RTM_TIMER, RTM_ROLE_SINGLE, "callback_ns", "release_ns"},
                        Case{RTM_ROUNDTRIP, RTM_ROLE_CLIENT, "received_ns", "release_ns"},
                        Case{RTM_ROUNDTRIP, RTM_ROLE_SERVER, "server_sent_ns", "server_received_ns"},
                        Case{RTM_ROUNDTRIP, RTM_ROLE_BESIDE, "received_ns", "received_ns"},
                        Case{RTM_REQUEST, RTM_ROLE_CLIENT, "received_ns", "release_ns"},
                        Case{RTM_REQUEST, RTM_ROLE_SERVER, "server_sent_ns", "server_received_ns"},
                        Case{RTM_CYCLE, RTM_ROLE_SINGLE, "response_received_ns", "release_ns"},
                        Case{RTM_CHAIN, RTM_ROLE_CLIENT, "sent_ns", "sample_release_ns"},
                        Case{RTM_DISCOVERY, RTM_ROLE_CLIENT, "first_ns", "started_ns"}}) {
    const Config config = config_of(c.measurement, c.role);
    const Names names = columns_of(config);
    const Judged judged = judged_of(config);
    EXPECT_EQ(names.at(judged.later), c.later);
    EXPECT_EQ(names.at(judged.earlier), c.earlier);
    EXPECT_EQ(judged.minus_ns, 0);
  }
}

TEST(Judged, AOneShotsIsItsLatenessBesideTheTimeout) {
  Config config = config_of(RTM_TIMER, RTM_ROLE_SINGLE);
  config.mode = RTM_ONE_SHOT;
  config.period_ns = 700;
  const Judged judged = judged_of(config);
  EXPECT_EQ(columns_of(config).at(judged.later), "callback_ns");
  EXPECT_EQ(columns_of(config).at(judged.earlier), "armed_before_ns");
  EXPECT_EQ(judged.minus_ns, 700);
}

}  // namespace
}  // namespace rtmeter
