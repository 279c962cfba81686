// Cycle: request and response between two components, on two threads or one.
#include <dirent.h>

#include <fstream>
#include <thread>

#include "harness.hpp"

namespace rtmeter_posix {
namespace {

// Threads of this process that belong to components.
std::size_t component_threads() {
  std::size_t count = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) {
    std::string name;
    std::ifstream(std::string("/proc/self/task/") + entry->d_name + "/comm") >> name;
    count += name == "posix-b" ? 1 : 0;
  }
  closedir(tasks);
  return count;
}

class ComponentsTest : public ::testing::TestWithParam<rtm_components> {
 protected:
  ComponentsTest() {
    Asked asked;
    asked.measurement = RTM_CYCLE;
    asked.components = GetParam();
    instance_ = std::make_unique<Instance>(asked);
    EXPECT_TRUE(instance_->started()) << instance_->error().message;
    void* a = instance_->node("a");
    void* b = instance_->node("b");
    request_ = instance_->publisher(a, "request");
    response_ = instance_->publisher(b, "response");
    EXPECT_NE(instance_->subscriber(b, "request", &ComponentsTest::on_request, this), nullptr);
    EXPECT_NE(instance_->subscriber(a, "response", &ComponentsTest::on_response, this), nullptr);
  }

  bool two_threads() const { return GetParam() == RTM_TWO_THREADS; }

  void send(std::uint64_t sequence) {
    const std::uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, static_cast<std::uint8_t>(sequence)};
    ASSERT_EQ(instance_->publish(request_, {sequence, data, sizeof data}), 0);
  }

  static void on_request(void* user, const rtm_message* m) {
    auto* self = static_cast<ComponentsTest*>(user);
    self->responder_ = std::this_thread::get_id();
    EXPECT_EQ(self->instance_->publish(self->response_, *m), 0);
  }
  static void on_response(void* user, const rtm_message* m) {
    auto* self = static_cast<ComponentsTest*>(user);
    EXPECT_EQ(std::this_thread::get_id(), self->main_);
    EXPECT_EQ(m->sequence, self->responses_++);
    EXPECT_EQ(m->bytes, 8U);
    EXPECT_EQ(m->data[7], static_cast<std::uint8_t>(m->sequence));
  }

  const std::thread::id main_ = std::this_thread::get_id();
  std::unique_ptr<Instance> instance_;
  void* request_ = nullptr;
  void* response_ = nullptr;
  std::atomic<std::thread::id> responder_{};
  std::uint64_t responses_ = 0;
};

TEST_P(ComponentsTest, EveryRequestIsAnsweredByTheRightThread) {
  EXPECT_EQ(component_threads(), two_threads() ? 1U : 0U);
  for (std::uint64_t k = 0; k < 2000; ++k) {
    send(k);
    while (responses_ <= k)
      if (k % 2 == 0)
        ASSERT_EQ(instance_->wait(60'000'000'000), 0);
      else
        ASSERT_EQ(instance_->spin_some(), 0);
    ASSERT_EQ(responses_, k + 1);
  }
  EXPECT_EQ(responder_.load() == main_, !two_threads());
  instance_->stop();
  // A joined thread may stand in /proc a little longer.
  for (int n = 0; n < 12000 && component_threads() > 0; ++n)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(component_threads(), 0U);
}

TEST_P(ComponentsTest, SeveralMayBeUnderWay) {
  for (std::uint64_t k = 0; k < 10; ++k) send(k);
  while (responses_ < 10) ASSERT_EQ(instance_->wait(60'000'000'000), 0);
  EXPECT_EQ(instance_->wait(1'000'000), 0);
  EXPECT_EQ(responses_, 10U);
}

TEST_P(ComponentsTest, InterruptEndsAWait) {
  for (int n = 0; n < 50; ++n) {
    std::thread other([this] { instance_->interrupt(); });
    EXPECT_EQ(n % 2 == 0 ? instance_->spin(INT64_MAX) : instance_->wait(-1), 0);
    other.join();
  }
}

TEST_P(ComponentsTest, ATopicHasOnePublisherAndOneMailbox) {
  void* node = instance_->node("c");
  EXPECT_EQ(instance_->publisher(node, "request"), nullptr);
  EXPECT_STREQ(instance_->error().field, "topic");
  EXPECT_EQ(instance_->subscriber(node, "request", &ComponentsTest::on_request, this), nullptr);
  EXPECT_STREQ(instance_->error().value, "request");
  void* nobody = instance_->publisher(node, "unheard");
  const std::uint8_t data[8] = {};
  EXPECT_NE(instance_->publish(nobody, {1, data, sizeof data}), 0);
}

// The timer of the first component, and a request at each of its ticks.
struct Ticking {
  Instance* instance;
  void* request;
  std::vector<std::int64_t> expected_ns = {};
  bool early = false;
  std::thread::id thread = {};

  static void on_fire(void* user, const rtm_fire* fire) {
    auto* self = static_cast<Ticking*>(user);
    self->early |= monotonic_ns() < fire->reported_expected_ns;
    self->thread = std::this_thread::get_id();
    const std::uint64_t sequence = self->expected_ns.size() / 2;
    const std::uint8_t data[8] = {0, 0, 0, 0, 0, 0, 0, static_cast<std::uint8_t>(sequence)};
    if (self->expected_ns.size() % 2 == 0) {  // every other: a tick needs no mail to come
      EXPECT_EQ(self->instance->publish(self->request, {sequence, data, sizeof data}), 0);
    }
    self->expected_ns.push_back(fire->reported_expected_ns);
    self->instance->interrupt();
  }
};

TEST_P(ComponentsTest, TheFirstHasATimerThatServesEveryTick) {
  constexpr std::int64_t kPeriod = 1'000'000;
  constexpr std::size_t kTicks = 200;
  Ticking ticking{instance_.get(), request_};
  rtm_timer_traits traits{};
  void* timer = instance_->timer({RTM_PERIODIC, kPeriod, &Ticking::on_fire, &ticking}, &traits);
  ASSERT_NE(timer, nullptr) << instance_->error().message;
  EXPECT_EQ(traits.reports_monotonic, 1);
  EXPECT_EQ(traits.overrun, RTM_CATCH_UP);
  const std::int64_t armed_ns = monotonic_ns();
  ASSERT_EQ(instance_->arm(timer, armed_ns), 0);
  while (ticking.expected_ns.size() < kTicks || responses_ < kTicks / 2)
    ASSERT_EQ(instance_->spin(INT64_MAX), 0);
  for (std::size_t tick = 0; tick < kTicks; ++tick)
    ASSERT_EQ(ticking.expected_ns[tick], armed_ns + static_cast<std::int64_t>(tick + 1) * kPeriod);
  EXPECT_FALSE(ticking.early);
  EXPECT_EQ(ticking.thread, main_);
  EXPECT_EQ(instance_->timer({RTM_PERIODIC, kPeriod, &Ticking::on_fire, &ticking}, &traits), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ComponentsTest, ::testing::Values(RTM_TWO_THREADS, RTM_ONE_THREAD),
                         [](const auto& shape) {
                           return std::string(shape.param == RTM_ONE_THREAD ? "one" : "two") + "_threads";
                         });

}  // namespace
}  // namespace rtmeter_posix
