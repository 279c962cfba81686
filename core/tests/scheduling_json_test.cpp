#include <gtest/gtest.h>

#include "child.hpp"
#include "system/scheduling.hpp"

namespace rtmeter {
namespace {

using testing_help::outcome_of;

Scheduling scheduling_of(const std::string& text) {
  return scheduling_from_json(Json::parse(text, "test"), "scheduling");
}
std::string outcome_of_reading(const std::string& text) {
  return outcome_of([&] { scheduling_of(text); });
}

TEST(SchedulingJson, EachPolicyIsReadAndWrittenBack) {
  for (const char* text :
       {R"({"policy":"other"})", R"({"policy":"fifo","priority":80})", R"({"policy":"rr","priority":1})",
        R"({"policy":"deadline","runtime_ns":200000,"deadline_ns":1000000,"period_ns":2000000})"}) {
    EXPECT_EQ(to_json(scheduling_of(text)).dump(), text);
  }
}

TEST(SchedulingJson, TextIsWhatAUserWrites) {
  EXPECT_EQ(to_string(Scheduling{}), "other");
  EXPECT_EQ(to_string(scheduling_of(R"({"policy":"rr","priority":99})")), "rr:99");
  EXPECT_EQ(to_string(scheduling_of(
                R"({"policy":"deadline","runtime_ns":1500,"deadline_ns":2000000,"period_ns":1000000000})")),
            "deadline:1500ns/2ms/1s");
}

TEST(SchedulingJson, PriorityOutOfRangeIsNamed) {
  EXPECT_CONTAINS(outcome_of_reading(R"({"policy":"fifo","priority":0})"), "scheduling = fifo:0: ");
  EXPECT_CONTAINS(outcome_of_reading(R"({"policy":"fifo","priority":100})"), "scheduling = fifo:100: ");
  EXPECT_CONTAINS(outcome_of_reading(R"({"policy":"rr","priority":4294967297})"),
                  "scheduling = rr:4294967297: ");
}

TEST(SchedulingJson, UnknownPolicyOrKeyIsRefused) {
  EXPECT_CONTAINS(outcome_of_reading(R"({"policy":"batch"})"), "choose other, fifo, rr or deadline");
  EXPECT_CONTAINS(outcome_of_reading(R"({"priority":5})"), "choose other, fifo, rr or deadline");
  EXPECT_CONTAINS(outcome_of_reading(R"("fifo")"), "choose other, fifo, rr or deadline");
  EXPECT_CONTAINS(outcome_of_reading(R"({"policy":"other","priority":5})"), "leave \"priority\" out");
  EXPECT_CONTAINS(outcome_of_reading(R"({"policy":"fifo","priority":5,"nice":3})"), "leave \"nice\" out");
}

TEST(SchedulingJson, MissingOrFractionalNumbersAreRefused) {
  EXPECT_CONTAINS(outcome_of_reading(R"({"policy":"fifo"})"), "needs the whole number \"priority\"");
  EXPECT_CONTAINS(outcome_of_reading(R"({"policy":"fifo","priority":1.5})"),
                  "needs the whole number \"priority\"");
  EXPECT_CONTAINS(outcome_of_reading(R"({"policy":"deadline","runtime_ns":1,"deadline_ns":2})"),
                  "\"period_ns\"");
}

TEST(SchedulingJson, DeadlineTimesMustBeInOrder) {
  EXPECT_CONTAINS(outcome_of_reading(R"({"policy":"deadline","runtime_ns":0,"deadline_ns":2,"period_ns":3})"),
                  "0 < runtime <= deadline <= period");
  EXPECT_CONTAINS(outcome_of_reading(R"({"policy":"deadline","runtime_ns":3,"deadline_ns":2,"period_ns":3})"),
                  "0 < runtime <= deadline <= period");
  EXPECT_CONTAINS(outcome_of_reading(R"({"policy":"deadline","runtime_ns":1,"deadline_ns":4,"period_ns":3})"),
                  "0 < runtime <= deadline <= period");
}

}  // namespace
}  // namespace rtmeter
