#include <linux/capability.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <iterator>
#include <thread>

#include "child.hpp"
#include "rt_settings.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;
using Policy = Scheduling::Policy;

// A thread that did `setup`, until it is destroyed.
class Companion {
 public:
  explicit Companion(std::function<void()> setup)
      : thread_([this, setup = std::move(setup)] {
          setup();
          ready_.set_value(gettid());
          done_.get_future().wait();
        }),
        tid(ready_.get_future().get()) {}
  ~Companion() {
    done_.set_value();
    thread_.join();
  }

 private:
  std::promise<int> ready_;
  std::promise<void> done_;
  std::thread thread_;

 public:
  const int tid;
};

TEST(Audit, TellsEveryThreadAndItsSettings) {
  SKIP_UNDER_EMULATION();
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  EXPECT_EQ(
      in_child([] {
        const std::vector<int> last = {get_affinity(0).back()};
        const Companion measured([&] {
          pthread_setname_np(pthread_self(), "rtm-measured");
          set_affinity(0, last);
          prctl(PR_SET_TIMERSLACK, 7000);
        });
        const Companion writer([] { set_scheduling(0, {.policy = Policy::rr, .priority = 3}, "test"); });
        const Companion foreign([] { pthread_setname_np(pthread_self(), "dds, \"recv\""); });
        std::string said;
        for (const ThreadFacts& facts : audit_threads({measured.tid}, {writer.tid})) {
          if (facts.tid == measured.tid) {
            said += facts.name + " " + facts.role + " " + to_string(facts.scheduling) + " slack " +
                    std::to_string(facts.timer_slack_ns.value_or(-1)) +
                    (facts.affinity == last ? " confined; " : " not confined; ");
          }
          if (facts.tid == writer.tid) said += facts.role + " " + to_string(facts.scheduling) + "; ";
          if (facts.tid == foreign.tid) said += facts.name + " " + facts.role + "; ";
          if (facts.tid == gettid()) said += "main " + facts.role + "; ";
        }
        return said + std::to_string(audit_threads({}, {}).size()) + " threads";
      }),
      "main middleware; rtm-measured measured other slack 7000 confined; service rr:3; "
      "dds, \"recv\" middleware; 4 threads");
}

TEST(Audit, IsWrittenAsTheSpecificationSays) {
  ThreadFacts fifo{7, "a", "measured", {.policy = Policy::fifo, .priority = 80}, {0, 1}, 50'000};
  ThreadFacts deadline{8, "b", "middleware", {}, {1}, std::nullopt};
  deadline.scheduling = {.policy = Policy::deadline, .runtime_ns = 1, .deadline_ns = 2, .period_ns = 3};
  EXPECT_EQ(
      to_json(std::vector<ThreadFacts>{fifo, deadline}).dump(),
      R"([{"tid":7,"name":"a","role":"measured","policy":"fifo","priority":80,"affinity":[0,1],)"
      R"("timer_slack_ns":50000},{"tid":8,"name":"b","role":"middleware","policy":"deadline","priority":0,)"
      R"("runtime_ns":1,"deadline_ns":2,"period_ns":3,"affinity":[1],"timer_slack_ns":null}])");
}

TEST(Audit, ThreadsThatEndMeanwhileAreLeftOut) {
  std::atomic<bool> done{false};
  std::thread spawner([&] {
    while (!done) std::thread([] {}).join();
  });
  for (int i = 0; i < 300; ++i) {
    const auto threads = audit_threads({}, {});
    EXPECT_GE(threads.size(), 2U);
    for (std::size_t k = 1; k < threads.size(); ++k) EXPECT_LT(threads[k - 1].tid, threads[k].tid);
  }
  done = true;
  spawner.join();
}

TEST(Audit, WithoutPrivilegeOnesOwnTimerSlackIsKnown) {
  EXPECT_EQ(in_child([] {
              prctl(PR_SET_TIMERSLACK, 9000);
              drop_privileges();
              return std::to_string(get_timer_slack_ns(0).value_or(-1)) + " " +
                     std::to_string(get_timer_slack_ns(gettid()).value_or(-1));
            }),
            "9000 9000");
}

TEST(Audit, AThreadThatIsGoneHasNoTimerSlack) { EXPECT_EQ(get_timer_slack_ns(1 << 30), std::nullopt); }

}  // namespace
}  // namespace rtmeter
