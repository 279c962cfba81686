// What is looked at of a reply, and when: a payload may be large.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "line.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

// Bytes of which one is told when they are first looked at.
class LookedAt {
 public:
  LookedAt() {
    page_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction handler{};
    handler.sa_handler = [](int /*signal*/) {
      mprotect(now()->page_, kBytes, PROT_READ);
      now()->looked_at_();
    };
    handler.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &handler, &before_);
    now() = this;
  }
  LookedAt(const LookedAt&) = delete;
  LookedAt& operator=(const LookedAt&) = delete;
  ~LookedAt() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(page_, kBytes);
  }

  void hide(const std::vector<std::uint8_t>& bytes, std::function<void()> looked_at) {
    looked_at_ = std::move(looked_at);
    std::memcpy(page_, bytes.data(), bytes.size());
    mprotect(page_, kBytes, PROT_NONE);
  }
  const std::uint8_t* bytes() const { return static_cast<const std::uint8_t*>(page_); }

 private:
  static constexpr std::size_t kBytes = 4096;
  static LookedAt*& now() {
    static LookedAt* one = nullptr;
    return one;
  }
  void* page_;
  std::function<void()> looked_at_;
  struct sigaction before_{};
};

// Looking at a large payload takes long. Were the release not claimed before, its sender could give up
// meanwhile what was stamped in time; here the same reply comes once more while the first is looked at.
TEST(RoundTrip, AReplyIsClaimedBeforeItsPayloadIsLookedAt) {
  Line wire(round_trips(InFlight::open, 2));
  LookedAt page;
  wire.middleware.publish = [&, publish = wire.middleware.publish](const Sent& sent) {
    if (sent.sequence != 1) return publish(sent);
    page.hide(sent.bytes, [&] {
      wire.clock.at_ns += 20;
      wire.middleware.deliver("pong", sent);
    });
    const auto& [on_message, user] = wire.middleware.subscribers.at("pong");
    const rtm_message message{sent.sequence, page.bytes(), static_cast<std::uint32_t>(sent.bytes.size())};
    wire.clock.at_ns += 10;
    on_message(user, &message);
  };
  EXPECT_EQ(wire.run(),
            (Rows{{100, 100, 130, A, kWarm}, {200, 200, 210, A, kServed}, {300, 300, 330, A, kServed}}));
  EXPECT_EQ(wire.counters.duplicate, 1u);
}

TEST(RoundTrip, ADamagedReplyGivesItsReleaseBack) {
  Line wire(round_trips(InFlight::one, 2));
  wire.middleware.publish = [&, publish = wire.middleware.publish](const Sent& sent) {
    publish(sent);
    if (sent.sequence != 1) return;
    Sent bad = sent;
    bad.bytes.back() ^= 1;
    wire.under_way.emplace(wire.clock.at_ns + 5, bad);
  };
  EXPECT_EQ(wire.run(),
            (Rows{{100, 100, 130, A, kWarm}, {200, 200, 230, A, kServed}, {300, 300, 330, A, kServed}}));
  EXPECT_EQ(wire.counters.corrupted, 1u);
}

}  // namespace
}  // namespace rtmeter
