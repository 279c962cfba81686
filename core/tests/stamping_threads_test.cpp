// Which threads have stamped, as they say themselves.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "measure/stampers.hpp"

namespace rtmeter {
namespace {

using Tids = std::vector<int>;

TEST(StampingThreads, NobodyIsNotOne) {
  const Stampers stampers;
  EXPECT_EQ(stampers.only(), 0);
  EXPECT_FALSE(stampers.several());
  EXPECT_EQ(stampers.tids(), Tids{});
}

TEST(StampingThreads, OneIsTheOnlyOneHoweverOftenItStamps) {
  Stampers stampers;
  for (int i = 0; i < 3; ++i) stampers.note();
  EXPECT_EQ(stampers.only(), gettid());
  EXPECT_FALSE(stampers.several());
  EXPECT_EQ(stampers.tids(), Tids{gettid()});
  EXPECT_TRUE(stampers.as_they_began().empty()) << "the process's first thread is always there";
}

TEST(StampingThreads, SeveralAreKnownAlsoAfterTheyHaveEnded) {
  Stampers stampers;
  int tid = 0;
  std::thread([&] { stampers.note(), tid = gettid(); }).join();
  EXPECT_EQ(stampers.only(), tid);
  stampers.note();
  stampers.note();
  EXPECT_EQ(stampers.only(), 0);
  EXPECT_TRUE(stampers.several());
  EXPECT_EQ(stampers.tids(), (Tids{tid, gettid()}));
  const std::vector<ThreadFacts> began = stampers.as_they_began();
  ASSERT_EQ(began.size(), 1u);
  EXPECT_EQ(began[0].tid, tid);
  EXPECT_TRUE(began[0].stamps);
}

TEST(StampingThreads, MoreThanThereIsRoomForStampUnnamed) {
  Stampers stampers;
  for (int i = 0; i < 66; ++i) std::thread([&] { stampers.note(); }).join();
  EXPECT_EQ(stampers.tids().size(), 64u);
}

}  // namespace
}  // namespace rtmeter
