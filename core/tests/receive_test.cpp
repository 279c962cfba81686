// How messages are received: as the measurement can, and the adapter, and its options leave it.
#include <gtest/gtest.h>

#include "errors.hpp"
#include "measure/session.hpp"

namespace rtmeter {
namespace {

// An adapter whose shared memory is polled.
Json memory_is_polled() {
  Json description = Json::object();
  for (const char* way : {"spin", "spin_once", "poll"}) description["receives"]["roundtrip"].push(way);
  description["receives"]["chain"] = Json::array().push("spin_once");
  description["poll"]["transport"] = Json::array().push("memory");
  return description;
}

Config over(const char* transport, rtm_measurement measurement) {
  Config config;
  config.measurement = measurement;
  config.options = {{"transport", transport}};
  return config;
}

TEST(Receive, IsTheFirstWayThatTheOptionsLeave) {
  EXPECT_EQ(choose_receive(memory_is_polled(), over("udp", RTM_ROUNDTRIP), RTM_SPIN), RTM_RECEIVE_SPIN);
  EXPECT_EQ(choose_receive(memory_is_polled(), over("memory", RTM_ROUNDTRIP), RTM_SPIN), RTM_RECEIVE_POLL);
  EXPECT_EQ(choose_receive(memory_is_polled(), over("udp", RTM_CHAIN), RTM_SPIN), RTM_RECEIVE_SPIN_ONCE);
}

TEST(Receive, AnOptionThatLeavesNoWayIsNamed) {
  try {
    choose_receive(memory_is_polled(), over("memory", RTM_CHAIN), RTM_SPIN);
    FAIL() << "a chain does not poll";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.field(), "options.transport");
    EXPECT_EQ(failure.value(), "memory");
    EXPECT_STREQ(failure.what(), "messages can only be polled for with it, which a chain does not");
  }
}

TEST(Receive, ACallThatBlocksCannotBeOpen) {
  Json calls = Json::object();
  calls["receives"]["request"] = Json::array().push("call");
  Config config;
  config.measurement = RTM_REQUEST;
  config.role = RTM_ROLE_CLIENT;
  EXPECT_EQ(choose_receive(calls, config, RTM_SPIN), RTM_RECEIVE_CALL);
  config.in_flight = InFlight::open;
  try {
    choose_receive(calls, config, RTM_SPIN);
    FAIL() << "it sends none before the last has been answered";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.field(), "in_flight");
    EXPECT_EQ(failure.value(), "open");
  }
}

TEST(Receive, AWayThatTheOptionsDoNotLeaveIsRefusedByTheOnesThatTheyDo) {
  Config config = over("memory", RTM_ROUNDTRIP);
  config.receive = RTM_RECEIVE_SPIN;
  try {
    choose_receive(memory_is_polled(), config, RTM_SPIN);
    FAIL() << "it only polls";
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(), "this adapter receives the messages of a roundtrip by poll");
  }
}

}  // namespace
}  // namespace rtmeter
