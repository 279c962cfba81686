// How the ends of a round trip greet before the run, and what becomes of a greeting that is refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "by_hand.hpp"
#include "measure/publications.hpp"
#include "system/guard.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

// Of one release of this, which gives up looking then.
Config client_by_hand(rtm_measurement measurement, std::int64_t connect_timeout_ns) {
  Config config = config_by_hand(measurement, 0, 1);
  config.role = RTM_ROLE_CLIENT;
  config.connect_timeout_ns = connect_timeout_ns;
  return config;
}

// Each is answered after 10 ns. The first looks for the server; the sixth is heard by all.
TEST(Greetings, AreTwentyMillisecondsApartHoweverSoonTheyAreAnswered) {
  Config config = client_by_hand(RTM_ROUNDTRIP, 1'000'000'000);
  config.beside = BesideConfig{};
  config.beside->subscribers = 2;
  ByHand hand(config);
  std::vector<std::int64_t> greetings;
  std::vector<Sent> answers;
  hand.middleware.publish = [&](const Sent& sent) {
    ASSERT_EQ(sent.sequence, RTM_SEQUENCE_HELLO);
    greetings.push_back(hand.clock.at_ns);
    answers.push_back(sent);
    if (greetings.size() == 6) told_to_go() = 1;
  };
  hand.middleware.wait = [&](std::int64_t timeout_ns) {
    hand.clock.at_ns += answers.empty() ? timeout_ns : std::min<std::int64_t>(timeout_ns, 10);
    for (const Sent& one : std::exchange(answers, {})) hand.middleware.deliver("pong", one);
  };
  hand.clock.at_ns = 0;
  hand.measurement->set_up();
  told_to_go() = 0;
  constexpr std::int64_t kApart = 20'000'000;
  EXPECT_EQ(greetings, (std::vector<std::int64_t>{0, 10, 10 + kApart, 10 + 2 * kApart, 10 + 3 * kApart,
                                                  10 + 4 * kApart}));
}

// Nobody is there yet: the error says how many were refused, and none is a call of the measurement.
TEST(Greetings, ThatAreRefusedAreToldAndAreNoRefusedCalls) {
  ByHand hand(client_by_hand(RTM_ROUNDTRIP, 60'000'000));  // it publishes nothing
  hand.middleware.wait = [&](std::int64_t timeout_ns) { hand.clock.at_ns += timeout_ns; };
  hand.clock.at_ns = 0;
  try {
    hand.measurement->set_up();
    FAIL() << "it has an answer";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.field(), "server");
    EXPECT_NE(std::string(failure.what()).find("; 3 of the messages were refused"), std::string::npos)
        << failure.what();
  }
  EXPECT_EQ(hand.session.refused_calls(), 0U);
}

// When each goal was given whose result comes after 10 ns, and its feedback from goal fed_from on: the topic
// that it goes by is found later than the services are.
std::vector<std::int64_t> goals_until_set_up(rtm_interface over, std::size_t fed_from, const char* dropped) {
  Config config = client_by_hand(RTM_REQUEST, 50'000'000);
  config.interface = over;
  ByHand hand(config);
  if (dropped != nullptr) hand.middleware.described["may_drop"] = dropped;
  std::vector<std::int64_t> goals;
  std::vector<Sent> answers;
  hand.middleware.call = [&](const Sent& sent) {
    EXPECT_EQ(sent.sequence, RTM_SEQUENCE_HELLO);
    goals.push_back(hand.clock.at_ns);
    answers.push_back(sent);
  };
  hand.middleware.wait = [&](std::int64_t timeout_ns) {
    hand.clock.at_ns += answers.empty() ? timeout_ns : 10;
    for (const Sent& one : std::exchange(answers, {})) {
      hand.middleware.answer(RTM_ACCEPTED, one);
      if (goals.size() >= fed_from) hand.middleware.answer(RTM_FEEDBACK, one);
      hand.middleware.answer(RTM_RESULT, one);
    }
  };
  hand.clock.at_ns = 0;
  hand.measurement->set_up();
  return goals;
}

TEST(Goals, AreGivenUntilAFeedbackHasComeToo) {
  constexpr std::int64_t kApart = 20'000'010;  // looks for an answer 10 ns long, then for as long as it waits
  using Goals = std::vector<std::int64_t>;
  EXPECT_EQ(goals_until_set_up(RTM_ACTION, 1, nullptr), Goals{0});
  EXPECT_EQ(goals_until_set_up(RTM_ACTION, 3, nullptr), (Goals{0, kApart, 2 * kApart}));
  EXPECT_EQ(goals_until_set_up(RTM_ACTION, 99, "feedback"), Goals{0});  // none may ever come
  EXPECT_EQ(goals_until_set_up(RTM_ACTION, 99, nullptr),
            (Goals{0, kApart, 2 * kApart}));  // until the timeout
  EXPECT_EQ(goals_until_set_up(RTM_SERVICE, 99, nullptr), Goals{0});
}

Config publisher_by_hand() {
  Config config = config_by_hand(RTM_ROUNDTRIP, 0, 1);
  config.role = RTM_ROLE_BESIDE;
  config.beside = BesideConfig{};
  config.beside->as = BesideAs::publisher;
  config.beside->number = 2;
  return config;
}

// Three greetings are refused; of six messages the second is.
TEST(FurtherPublisher, SaysHowManyOfItsMessagesWereTaken) {
  ByHand hand(publisher_by_hand());
  std::vector<std::uint64_t> taken;
  const auto take = [&](const Sent& sent) { taken.push_back(sent.sequence); };
  told_to_go() = 0;
  hand.clock.on_sleep = [&] {
    const std::size_t slept = hand.clock.sleeps.size();
    if (slept == 3) told_to_go() = 1;
    hand.middleware.publish = slept < 4 || slept == 5 ? nullptr : std::function<void(const Sent&)>(take);
    if (slept == 9) told_to_go() = -1;
    if (slept == 10) hand.stop = true;
  };
  hand.run();
  told_to_go() = 0;
  EXPECT_EQ(taken, (std::vector<std::uint64_t>{publication::sequence(2, 0), publication::sequence(2, 2),
                                               publication::sequence(2, 3), publication::sequence(2, 4),
                                               publication::sequence(2, 5)}));
  EXPECT_EQ(hand.measurement->facts().find("published")->find("sent")->dump(), "5");
}

// When it published what, of period 100 ns: it wakes 450 ns late for release 2, and is told meanwhile that
// the client has ended. To publish takes it that long.
std::vector<std::int64_t> published_after_a_stall(std::int64_t takes_ns) {
  ByHand hand(publisher_by_hand());
  std::vector<std::int64_t> at_ns;
  const auto look = [&] {
    if (hand.clock.at_ns >= 750) told_to_go() = -1;
    hand.stop = hand.measurement->silent_ns() != kAbsent;
  };
  told_to_go() = 1;
  hand.clock.late_ns[300] = 450;
  hand.middleware.publish = [&](const Sent& sent) {
    EXPECT_EQ(sent.sequence, publication::sequence(2, at_ns.size()));
    EXPECT_EQ(hand.measurement->silent_ns(), kAbsent);
    at_ns.push_back(hand.clock.at_ns);
    hand.clock.at_ns += takes_ns;
    look();
  };
  hand.clock.on_sleep = look;
  hand.run();
  told_to_go() = 0;
  return at_ns;
}

TEST(FurtherPublisher, CatchesUpWithWhatWasDueWhenItIsToldToEnd) {
  EXPECT_EQ(published_after_a_stall(0), (std::vector<std::int64_t>{100, 200, 750, 750, 750, 750, 750}));
}

TEST(FurtherPublisher, GivesUpAfterASecondWhereItIsTooSlow) {
  constexpr std::int64_t kTakes = 400'000'000;
  EXPECT_EQ(published_after_a_stall(kTakes),
            (std::vector<std::int64_t>{100, 100 + kTakes, 100 + 2 * kTakes, 100 + 3 * kTakes}));
}

}  // namespace
}  // namespace rtmeter
