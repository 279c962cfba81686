// A clock that hosts have in common, read together with CLOCK_MONOTONIC.
#include "system/other_clock.hpp"

#include <sys/timex.h>
#include <unistd.h>

#include "child.hpp"
#include "probe/doubts.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

constexpr std::int64_t kSecond = 1'000'000'000;

// A monotonic clock that moves only when it is told to, and another that runs `ahead_ns` before it.
struct Scripted {
  std::int64_t now_ns = kSecond, ahead_ns = 5 * kSecond;
  bool is_there = true;
  OtherClock clock{"planted",
                   [this](std::int64_t* at) {
                     *at = now_ns + ahead_ns;
                     return is_there;
                   },
                   [this](std::int64_t* at) {
                     *at = now_ns;
                     return true;
                   }};
  std::vector<std::int64_t> read_at() const {
    std::vector<std::int64_t> times;
    const Json facts = clock.to_json();
    for (const Json& r : facts.find("readings")->as_array()) {
      EXPECT_EQ(r.as_array()[1].as_int() - r.as_array()[0].as_int(), ahead_ns);
      times.push_back(r.as_array()[0].as_int());
    }
    return times;
  }
};

TEST(OtherClock, IsReadEachSecondAndWhenItIsToldTo) {
  Scripted s;
  for (int look = 0; look < 40; ++look) {
    s.clock.look();
    s.now_ns += kSecond / 4;
  }
  EXPECT_EQ(s.read_at().size(), 10U);
  s.clock.look_now();
  EXPECT_EQ(s.read_at().back(), s.now_ns);
}

TEST(OtherClock, KeepsAFewReadingsOfALongRunFromItsFirstOn) {
  Scripted s;
  for (std::int64_t second = 0; second < 3 * static_cast<std::int64_t>(OtherClock::kMost); ++second) {
    s.clock.look();
    s.now_ns += kSecond;
  }
  const std::vector<std::int64_t> times = s.read_at();
  EXPECT_LE(times.size(), OtherClock::kMost);
  EXPECT_EQ(times.front(), kSecond);
  for (std::size_t i = 1; i < times.size(); ++i) {
    EXPECT_GE(times[i] - times[i - 1], kSecond);
    EXPECT_LE(times[i] - times[i - 1], 4 * kSecond);
  }
}

TEST(OtherClock, ThatIsGoneInMidRunIsADoubt) {
  Scripted s;
  s.is_there = false;
  s.now_ns += kSecond;
  s.clock.look();
  s.is_there = true;
  s.clock.look_now();
  EXPECT_EQ(s.read_at().size(), 1U);
  Json list = Json::array();
  add_doubts_of_shared_clock(s.clock.to_json(), list);
  EXPECT_NE(list.dump().find("shared_clock_failed"), std::string::npos);
}

TEST(OtherClock, TaiIsSaidToShowUtcWhereItDoes) {
  const OtherClock clock("tai");
  Json facts = clock.to_json();
  EXPECT_EQ(facts.find("id")->as_string(), "CLOCK_TAI");
  const auto said = [&facts](int offset_s, bool synchronised) {
    facts["utc_offset_s"] = offset_s;
    facts["synchronised"] = synchronised;
    Json list = Json::array();
    add_doubts_of_shared_clock(facts, list);
    std::string types;
    for (const Json& one : list.as_array()) types += one.find("type")->as_string() + " ";
    return types;
  };
  EXPECT_EQ(said(37, true), "");
  EXPECT_EQ(said(0, true), "tai_offset_unset ");
  EXPECT_EQ(said(37, false), "clock_not_synchronised ");
}

TEST(OtherClock, TaiIsSynchronisedIfTheKernelSaysSo) {
  timex kernel{};
  if (adjtimex(&kernel) < 0) GTEST_SKIP() << "adjtimex is not permitted";
  const Json facts = OtherClock("tai").to_json();
  EXPECT_EQ(facts.find("synchronised")->dump(), (kernel.status & STA_UNSYNC) != 0 ? "false" : "true");
}

TEST(OtherClock, ThatIsNoneIsRefusedByName) {
  const auto said = [](const char* name) { return outcome_of([&] { OtherClock clock(name); }); };
  for (const auto& [name, message] :
       {std::pair{"/dev/ptp99", "no such PTP hardware clock"}, {"/dev/null", "is no PTP hardware clock"}}) {
    const std::string refused = said(name);
    for (const char* part : {"shared_clock", name, message, "give tai"})
      EXPECT_NE(refused.find(part), std::string::npos) << refused;
  }
}

}  // namespace
}  // namespace rtmeter
