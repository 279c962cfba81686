#include "probe/progress.hpp"

#include <gtest/gtest.h>

#include "sample_log_file.hpp"

namespace rtmeter {
namespace {

using testing_help::A;
using testing_help::kWarm;

Json progress_of(const std::vector<std::vector<std::int64_t>>& rows, std::int64_t minus_ns = 0) {
  Progress progress({1, 0, minus_ns}, 4, 12);
  std::vector<std::int64_t> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  progress.see(flat.data(), rows.size());
  EXPECT_EQ(progress.seen(), rows.size());
  return progress.to_json();
}

TEST(Progress, TheMaximumIsThatOfTheMeasuredReleases) {
  const Json seen = progress_of({{100, 9'000, A, kWarm},
                                 {200, 230, A, kServed},
                                 {300, 350, A, kServed},
                                 {400, 410, A, kServed},
                                 {500, A, 800, kSkipped},
                                 {600, A, A, kLost},
                                 {700, A, A, kLost},
                                 {800, 9'999, A, kInFlight}});
  EXPECT_EQ(seen.dump(),
            R"({"event":"progress","released":8,"of":12,"warm_up":1,"max_ns":50,"lost":2,"skipped":1})");
}

TEST(Progress, InWarmUpThereIsNoMaximum) {
  EXPECT_TRUE(
      progress_of({{100, 9'000, A, kWarm}, {200, A, A, kLost | kWarmUpFlag}}).find("max_ns")->is_null());
}

TEST(Progress, NothingWasSentForWhatWasSkippedInWarmUpEither) {
  Progress progress({1, 0, 0}, 4, 12);
  const std::int64_t rows[] = {100, A,   300,     kSkipped | kWarmUpFlag, 200, 210, A, kWarm, 300,
                               A,   400, kSkipped};
  progress.see(rows, 3);
  EXPECT_EQ(progress.unsent(), 2u);
  EXPECT_EQ(progress.to_json().find("skipped")->as_int(), 1);
}

TEST(Progress, TheTimeoutIsTakenOffAndEarlyIsNegative) {
  EXPECT_EQ(progress_of({{100, 230, A, kServed}, {200, 320, A, kServed}}, 150).find("max_ns")->as_int(), -20);
}

}  // namespace
}  // namespace rtmeter
