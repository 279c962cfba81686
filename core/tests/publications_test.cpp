// What a process that hears topic ping counts of further publishers' messages, and what it leaves to others.
#include "measure/publications.hpp"

#include <gtest/gtest.h>

namespace rtmeter {
namespace {

Config of_publishers(int publishers) {
  Config config;
  config.payload_bytes = 16;
  config.beside = BesideConfig{};
  config.beside->publishers = publishers;
  return config;
}

std::int64_t count(const Publications& of, std::size_t publisher, const char* what) {
  return of.to_json().as_array()[publisher - 2].find(what)->as_int();
}

TEST(Publications, EachMessageOfEachPublisherCountsOnce) {
  Publications heard(of_publishers(3));
  Payload payload(16), other(20);
  const auto take = [&](int publisher, std::uint64_t k) {
    return heard.take(payload.message(publication::sequence(publisher, k)));
  };
  EXPECT_TRUE(heard.expected());
  EXPECT_TRUE(take(2, publication::kGreeting));
  EXPECT_FALSE(heard.greeted());
  for (const std::uint64_t k : {0, 1, 1, 2, 5000, 2, 5}) EXPECT_TRUE(take(2, k));
  EXPECT_TRUE(heard.take(other.message(publication::sequence(3, 7))));  // damaged
  EXPECT_FALSE(heard.greeted());
  EXPECT_TRUE(take(3, 0));
  EXPECT_TRUE(heard.greeted());
  EXPECT_EQ(count(heard, 2, "received"), 5);  // 0, 1, 2, 5000, 5
  EXPECT_EQ(count(heard, 2, "duplicate"), 2);
  EXPECT_EQ(count(heard, 2, "corrupted"), 0);
  EXPECT_EQ(count(heard, 3, "received"), 1);
  EXPECT_EQ(count(heard, 3, "corrupted"), 1);
  EXPECT_EQ(heard.to_json().as_array()[1].find("name")->as_string(), "publisher3");
  EXPECT_EQ(heard.seen(), 10U);
}

TEST(Publications, WhatTheClientSendsAndWhatNobodyKnowsIsLeft) {
  Publications heard(of_publishers(2)), none(of_publishers(1));
  Payload payload(16);
  for (const std::uint64_t sequence :
       {std::uint64_t{0}, std::uint64_t{1} << 39, std::uint64_t{RTM_SEQUENCE_HELLO},
        publication::sequence(1, 0), publication::sequence(3, 0)})
    EXPECT_FALSE(heard.take(payload.message(sequence))) << sequence;
  EXPECT_FALSE(none.take(payload.message(publication::sequence(2, 0))));
  EXPECT_EQ(heard.seen(), 0U);
  EXPECT_FALSE(none.expected());
  EXPECT_FALSE(none.greeted());
}

}  // namespace
}  // namespace rtmeter
