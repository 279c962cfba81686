// What runs beside a round trip, and what happens where a middleware does not come back: on a probe whose
// middleware is a queue.
#include <gtest/gtest.h>

#include <algorithm>

#include "probe_process.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

constexpr std::int64_t kSamples = 100, kTotal = 150, kForever = 1'000'000, kHour = 3'600'000'000'000;

Json client(std::int64_t samples, Json::Object more) {
  more.insert(more.end(), {{"role", "client"}, {"loss_timeout_ns", kHour}});
  return probe_config("roundtrip", samples, std::move(more));
}

Json second(const char* place, std::int64_t payload_bytes, std::int64_t period_ns) {
  return Json(Json::Object{{"place", place}, {"payload_bytes", payload_bytes}, {"period_ns", period_ns}});
}

std::int64_t number(const Json& object, const char* key) { return object.find(key)->as_int(); }

bool has_warning(const Json& end, const std::string& type) {
  const Json::Array& all = end.find("warnings")->as_array();
  return std::any_of(all.begin(), all.end(),
                     [&](const Json& w) { return w.find("type")->as_string() == type; });
}

// The one error of a run that cannot be.
Json refusal(const std::string& program, const Json& config) {
  const Folder folder;
  ProbeProcess probe(program, folder, "probe", config);
  const Json error = probe.next_event("error");
  EXPECT_EQ(probe.wait(), 1);
  return error;
}

TEST(SecondTopic, IsSentAndReceivedBesideTheRoundTrip) {
  for (const char* place : {"same_node", "same_process"}) {
    SCOPED_TRACE(place);
    const Folder folder;
    ProbeProcess probe(RTMETER_PROBE, folder, "probe",
                       client(kForever, {{"second_topic", second(place, 5'000, 2'000'000)}}));
    const Json ready = probe.next_event("ready");
    ASSERT_FALSE(ready.is_null()) << probe.errors();
    const bool same_node = std::string(place) == "same_node";
    EXPECT_EQ(ready.find("adapter")->find("instances")->as_string(), same_node ? "1" : "2");
    EXPECT_EQ(ready.find("adapter")->find("room")->as_string(), same_node ? "5000" : "500");
    int service = 0;
    for (const Json& thread : ready.find("threads")->as_array())
      if (thread.find("name")->as_string() == "rtm-second") {
        EXPECT_EQ(thread.find("role")->as_string(), "service");
        EXPECT_EQ(thread.find("policy")->as_string(), "other");
        ++service;
      }
    EXPECT_EQ(service, 1);

    EXPECT_TRUE(probe.says("second topic"));
    probe.interrupt();
    const Json end = probe.next_event("end");
    EXPECT_EQ(probe.wait(), 4) << probe.errors();
    ASSERT_FALSE(end.is_null()) << probe.errors();
    EXPECT_EQ(end.find("outcome")->as_string(), "interrupted");
    EXPECT_EQ(number(*end.find("counters"), "corrupted"), 0);
    EXPECT_EQ(number(*end.find("counters"), "refused_calls"), 0);
    const Json& found = *end.find("second_topic");
    EXPECT_EQ(found.find("place")->as_string(), place);
    EXPECT_EQ(number(found, "payload_bytes"), 5'000);
    EXPECT_EQ(number(found, "period_ns"), 2'000'000);
    EXPECT_EQ(number(found, "refused"), 0);
    EXPECT_GE(number(found, "received"), 3);
    EXPECT_LE(number(found, "received"), number(found, "sent"));
    EXPECT_FALSE(has_warning(end, "second_topic_silent"));
  }
}

TEST(SecondTopic, TakesItsPayloadAndPeriodFromTheRoundTrip) {
  const Folder folder;
  const Json here(Json::Object{{"place", "same_node"}});
  ProbeProcess probe(RTMETER_PROBE, folder, "probe", client(kSamples, {{"second_topic", here}}));
  const Json end = probe.next_event("end");
  EXPECT_EQ(probe.wait(), 0) << probe.errors();
  ASSERT_FALSE(end.is_null()) << probe.errors();
  EXPECT_EQ(end.find("outcome")->as_string(), "complete");
  EXPECT_EQ(number(end, "rows"), kTotal);
  EXPECT_GE(number(*end.find("second_topic"), "received"), 1) << "it was heard before the run began";
  EXPECT_EQ(number(*end.find("second_topic"), "payload_bytes"), 500);
  EXPECT_EQ(number(*end.find("second_topic"), "period_ns"), 1'000'000);
}

TEST(SecondTopic, IsNotInTheResultOfARunWithoutOne) {
  const Folder folder;
  ProbeProcess probe(RTMETER_PROBE, folder, "probe", client(kSamples, {}));
  EXPECT_EQ(probe.next_event("end").find("second_topic"), nullptr);
}

TEST(SecondTopic, ThatTheClientDoesNotHearIsAnError) {
  for (const char* place : {"same_node", "same_process"}) {
    const Json error =
        refusal(RTMETER_PROBE, client(kSamples, {{"second_topic", second(place, 500, 1'000'000)},
                                                 {"connect_timeout_ns", 2'000'000'000},
                                                 {"options", option("deaf", "yes")}}));
    EXPECT_EQ(error.find("field")->as_string(), "second_topic");
    EXPECT_EQ(error.find("value")->as_string(), place);
    EXPECT_NE(error.find("message")->as_string().find("within 2000 ms"), std::string::npos);
    EXPECT_FALSE(error.find("remedy")->as_string().empty());
  }
}

TEST(SecondTopic, ThatAServerDoesNotHearIsAWarning) {
  const Folder folder;
  Json config = probe_config("roundtrip", kSamples,
                             {{"role", "server"}, {"second_topic", second("same_node", 500, 1'000'000)}});
  ProbeProcess probe(RTMETER_PROBE, folder, "probe",
                     std::move(config));  // its own goes to the client's topic
  ASSERT_FALSE(probe.next_event("ready").is_null()) << probe.errors();
  probe.interrupt();
  const Json end = probe.next_event("end");
  EXPECT_EQ(probe.wait(), 0);
  EXPECT_EQ(number(*end.find("second_topic"), "received"), 0);
  EXPECT_TRUE(has_warning(end, "second_topic_silent"));
}

TEST(SecondTopic, IsRefusedWhereItCannotBe) {
  const Json::Object nodes{{"second_topic", second("same_node", 500, 1'000'000)}};
  const Json unable = refusal(RTMETER_POSIX_PROBE, client(kSamples, nodes));
  EXPECT_EQ(unable.find("field")->as_string(), "second_topic");
  EXPECT_NE(unable.find("message")->as_string().find("no second topic"), std::string::npos);

  const Json meaningless = refusal(RTMETER_POSIX_PROBE, probe_config("wakeup", kSamples, nodes));
  EXPECT_EQ(meaningless.find("field")->as_string(), "second_topic");
  EXPECT_NE(meaningless.find("message")->as_string().find("wakeup"), std::string::npos);

  const auto field = [](Json given) {
    const Json error = refusal(RTMETER_PROBE, client(kSamples, {{"second_topic", std::move(given)}}));
    return error.find("field")->as_string();
  };
  EXPECT_EQ(field(second("nowhere", 500, 1'000'000)), "second_topic.place");
  EXPECT_EQ(field(second("same_node", 4, 1'000'000)), "second_topic.payload_bytes");
  EXPECT_EQ(field(second("same_node", 500, 0)), "second_topic.period_ns");
  EXPECT_EQ(field(Json(Json::Object{{"payload_bytes", 500}})), "second_topic.place");
  EXPECT_EQ(field(Json(Json::Object{{"place", "same_node"}, {"rate", 1}})), "second_topic.rate");
}

TEST(AMiddlewareThatDoesNotComeBack, EndsTheRunWithAnErrorThatKeepsWhatWasMeasured) {
  const Folder folder;
  ProbeProcess probe(RTMETER_PROBE, folder, "probe",
                     client(kForever, {{"options", option("hang", "publish")}}));
  EXPECT_TRUE(probe.says("hangs"));
  probe.interrupt();
  const Json error = probe.next_event("error");
  ASSERT_FALSE(error.is_null()) << probe.errors();
  EXPECT_EQ(error.find("field")->as_string(), "middleware");
  EXPECT_EQ(error.find("value")->as_string(), "loopback");
  EXPECT_NE(error.find("message")->as_string().find("has not come back"), std::string::npos);
  EXPECT_FALSE(error.find("remedy")->as_string().empty());
  const Json end = probe.next_event("end");
  EXPECT_EQ(probe.wait(), 1);
  EXPECT_EQ(end.find("outcome")->as_string(), "failed");
  EXPECT_GE(number(end, "rows"), 10);
}

}  // namespace
}  // namespace rtmeter
