#include "measure/pending.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rtmeter {
namespace {

using Ring = Pending<5>;
using State = Ring::State;
constexpr std::int64_t kSize = 1 << 15;

// Neighbours are written by two CPUs at once: the sender's slot and the one that is answered.
template <std::size_t Columns>
constexpr bool kApart =
    alignof(typename Pending<Columns>::Slot) == 64 && sizeof(typename Pending<Columns>::Slot) % 64 == 0;
static_assert(kApart<5> && kApart<8>);
static_assert(sizeof(Pending<5>::Slot) == 64, "a round trip's is one line");
static_assert(sizeof(Pending<8>::Slot) == 128, "a cycle's is two");

TEST(Pending, NoTwoSlotsShareACacheLine) {
  Ring ring(1);
  const auto line = [&](std::int64_t k) { return reinterpret_cast<std::uintptr_t>(&ring.slot(k)) / 64; };
  for (std::int64_t k = 1; k < 100; ++k) EXPECT_NE(line(k), line(k - 1));
}

Ring::Slot& send(Ring& ring, State state = State::outstanding) {
  Ring::Slot& s = ring.take();
  ring.publish(s, state);
  return s;
}

TEST(Pending, IsFullWhenEverySlotIsUnsettled) {
  Ring ring(1);
  EXPECT_TRUE(ring.none_outstanding());
  for (std::int64_t k = 0; k < kSize; ++k) {
    ASSERT_FALSE(ring.full()) << k;
    send(ring);
  }
  EXPECT_TRUE(ring.full());
  EXPECT_FALSE(ring.none_outstanding());
  EXPECT_EQ(ring.next(), kSize);
}

TEST(Pending, HasRoomForWhatIsAsked) {
  Ring ring(kSize + 1);
  for (std::int64_t k = 0; k < 2 * kSize; ++k) {
    ASSERT_FALSE(ring.full()) << k;
    send(ring);
  }
  EXPECT_TRUE(ring.full());
}

TEST(Pending, FindsASlotAsLongAsItIsTheReleases) {
  Ring ring(1);
  EXPECT_EQ(ring.find(0), nullptr);
  EXPECT_EQ(ring.find(-1), nullptr);
  Ring::Slot& first = send(ring, State::answered);
  EXPECT_EQ(ring.find(0), &first);
  ring.emit(false, [](auto&&...) {});
  EXPECT_EQ(ring.find(0), &first) << "a settled slot is remembered";
  for (std::int64_t k = 1; k <= kSize; ++k) {
    send(ring, State::answered);
    ring.emit(false, [](auto&&...) {});
  }
  EXPECT_EQ(ring.find(0), nullptr) << "its slot is another's";
  EXPECT_EQ(ring.find(kSize), &first);
}

TEST(Pending, ATakenSlotIsNobodysAndEmptyUntilItIsPublished) {
  Ring ring(1);
  for (std::int64_t k = 0; k < kSize; ++k) {
    Ring::Slot& s = ring.take();
    for (std::size_t c = 0; c < 5; ++c) s.set(c, 7);
    ring.publish(s, State::answered);
    ring.emit(false, [](auto&&...) {});
  }
  Ring::Slot& s = ring.take();
  EXPECT_EQ(ring.find(0), nullptr);
  for (std::size_t c = 0; c < 5; ++c) EXPECT_EQ(s.at(c), INT64_MIN) << c;
}

TEST(Pending, IsSettledOnce) {
  Ring ring(1);
  Ring::Slot& a = send(ring);
  EXPECT_TRUE(Ring::unsettled(a));
  EXPECT_TRUE(Ring::claim(a));
  EXPECT_TRUE(Ring::unsettled(a));
  EXPECT_FALSE(Ring::claim(a));
  EXPECT_FALSE(Ring::lose(a));
  Ring::settle(a, State::answered);
  EXPECT_FALSE(Ring::unsettled(a));
  EXPECT_FALSE(Ring::lose(a));

  Ring::Slot& b = send(ring);
  EXPECT_TRUE(Ring::lose(b));
  EXPECT_FALSE(Ring::unsettled(b));
  EXPECT_FALSE(Ring::claim(b));
  EXPECT_FALSE(Ring::lose(b));
}

using Emitted = std::vector<std::pair<std::int64_t, State>>;
Emitted emitted(Ring& ring, bool all) {
  Emitted seen;
  ring.emit(all, [&](std::int64_t k, const Ring::Slot&, State state) { seen.emplace_back(k, state); });
  return seen;
}

TEST(Pending, RowsLeaveInOrderUpToTheFirstThatIsUnsettled) {
  Ring ring(1);
  send(ring, State::skipped);
  Ring::Slot& open = send(ring);
  send(ring, State::answered);
  EXPECT_EQ(emitted(ring, false), (Emitted{{0, State::skipped}}));
  EXPECT_EQ(ring.oldest(), 1);
  EXPECT_EQ(emitted(ring, false), (Emitted{}));
  Ring::lose(open);
  EXPECT_EQ(emitted(ring, false), (Emitted{{1, State::lost}, {2, State::answered}}));
  EXPECT_TRUE(ring.none_outstanding());
  send(ring);
  send(ring, State::answered);
  EXPECT_EQ(emitted(ring, true), (Emitted{{3, State::outstanding}, {4, State::answered}}));
}

TEST(Pending, GrowsWithWhatItHolds) {
  Ring ring(1);
  for (std::int64_t k = 0; k < kSize; ++k) send(ring).set(1, 1'000 + k);
  ring.grow();
  EXPECT_FALSE(ring.full());
  for (std::int64_t k = 0; k < kSize; ++k) {
    ASSERT_NE(ring.find(k), nullptr) << k;
    ASSERT_EQ(ring.slot(k).at(1), 1'000 + k);
    ASSERT_TRUE(Ring::unsettled(ring.slot(k)));
  }
  EXPECT_EQ(ring.find(kSize), nullptr);
  for (std::int64_t k = kSize; k < 2 * kSize; ++k) {
    ASSERT_FALSE(ring.full()) << k;
    send(ring).set(1, 1'000 + k);
  }
  EXPECT_TRUE(ring.full());
  for (std::int64_t k = 0; k < 2 * kSize; ++k) {
    ASSERT_NE(ring.find(k), nullptr) << k << " has no slot of its own";
    ASSERT_EQ(ring.slot(k).at(1), 1'000 + k);
  }
}

}  // namespace
}  // namespace rtmeter
