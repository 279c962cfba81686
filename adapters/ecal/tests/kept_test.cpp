// What waits for the measured thread in a chain or discovery over eCAL: no more than the history's depth.
#include "kept.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace rtmeter_ecal {
namespace {

struct Subscriber {
  char name;
};

// Whose they are, who sent them, and their first byte.
std::string taken(Kept<Subscriber>& kept) {
  Kept<Subscriber>::Messages messages;
  kept.take(messages);
  std::string told;
  for (const auto& one : messages)
    told += std::string(1, one.subscriber->name) + std::to_string(one.publisher) + ":" +
            std::to_string(one.bytes.front()) + " ";
  return told;
}

TEST(Kept, TheNewestOfEachPublisherStay) {
  const Subscriber a{'a'}, b{'b'};
  Kept<Subscriber> kept(2);
  for (std::uint8_t k = 1; k <= 4; ++k) kept.add(a, 1, {k});
  kept.add(b, 1, {5});
  kept.add(a, 2, {6});
  kept.add(a, 1, {7});
  EXPECT_EQ(taken(kept), "a1:4 b1:5 a2:6 a1:7 ");
}

TEST(Kept, WhatWasTakenLeavesRoom) {
  const Subscriber a{'a'};
  Kept<Subscriber> kept(1);
  for (std::uint8_t k = 1; k <= 3; ++k) {
    kept.add(a, 1, {k});
    EXPECT_EQ(taken(kept), "a1:" + std::to_string(k) + " ");
    EXPECT_TRUE(kept.empty());
  }
}

TEST(Kept, WhereTheSenderWaitsNothingIsReplaced) {
  const Subscriber a{'a'};
  Kept<Subscriber> kept;
  for (std::uint8_t k = 1; k <= 4; ++k) kept.add(a, 1, {k});
  EXPECT_EQ(taken(kept), "a1:1 a1:2 a1:3 a1:4 ");
}

}  // namespace
}  // namespace rtmeter_ecal
