// What a further subscriber counts of the pings: each once, over measured releases.
#include "measure/receipts.hpp"

#include <gtest/gtest.h>

namespace rtmeter {
namespace {

std::int64_t count(const Receipts& of, const char* what) { return of.to_json().find(what)->as_int(); }

TEST(Receipts, EachPingCountsOnceAndWhatIsNoneDoesNot) {
  Config config;
  config.warm_up = 2;
  config.samples = 3;
  config.payload_bytes = 16;
  Receipts receipts(config, 2);
  Payload payload(16), other(20);
  const auto take = [&](std::uint64_t sequence) { receipts.take(payload.message(sequence)); };
  EXPECT_FALSE(receipts.greeted());
  receipts.take(other.message(RTM_SEQUENCE_HELLO));  // damaged
  take(5);                                           // none of this run's
  EXPECT_FALSE(receipts.greeted());
  take(RTM_SEQUENCE_HELLO);
  EXPECT_TRUE(receipts.greeted());
  for (const std::uint64_t k : {0, 1, 1, 2, 3, 3, 3}) take(k);
  EXPECT_FALSE(receipts.has_last());
  take(4);
  EXPECT_TRUE(receipts.has_last());
  EXPECT_EQ(receipts.name(), "subscriber2");
  EXPECT_EQ(count(receipts, "received"), 3);
  EXPECT_EQ(count(receipts, "duplicate"), 2);
  EXPECT_EQ(count(receipts, "corrupted"), 2);
}

}  // namespace
}  // namespace rtmeter
