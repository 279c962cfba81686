#include "system/audit.hpp"

#include <linux/capability.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <iterator>
#include <thread>

#include "child.hpp"
#include "system/affinity.hpp"
#include "system/scheduling.hpp"

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

std::string text_of(const std::vector<ThreadFacts>& threads, int tid) {
  const auto found =
      std::find_if(threads.begin(), threads.end(), [&](const auto& t) { return t.tid == tid; });
  return found == threads.end() ? "missing"
                                : found->name + " " + found->role + " " + to_string(found->scheduling);
}

std::size_t threads_in_proc() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(Audit, TellsEveryThreadAndItsSettings) {
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  EXPECT_EQ(in_child([] {
              pthread_setname_np(pthread_self(), "main");
              const Companion measured([] { pthread_setname_np(pthread_self(), "rtm-measured"); });
              const Companion writer([] {
                pthread_setname_np(pthread_self(), "rtm-writer");
                set_scheduling(0, {.policy = Policy::rr, .priority = 3}, "test");
              });
              const Companion foreign([] { pthread_setname_np(pthread_self(), "dds, \"recv\""); });
              const auto threads = audit_threads({measured.tid}, {writer.tid});
              std::string said;
              for (const int tid : {static_cast<int>(gettid()), measured.tid, writer.tid, foreign.tid}) {
                said += text_of(threads, tid) + "; ";
              }
              return said + (threads.size() == threads_in_proc() ? "no others" : "others");
            }),
            "main middleware other; rtm-measured measured other; rtm-writer service rr:3; "
            "dds, \"recv\" middleware other; no others");
}

TEST(Audit, ReadsAffinityAndTimerSlackOfAnotherThread) {
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  const std::vector<int> last = {get_affinity(0).back()};
  const Companion other([&] {
    set_affinity(0, last);
    prctl(PR_SET_TIMERSLACK, 7000);
  });
  for (const ThreadFacts& facts : audit_threads({}, {})) {
    EXPECT_EQ(facts.cpus == last && facts.timer_slack_ns == 7000, facts.tid == other.tid) << facts.tid;
  }
}

TEST(Audit, IsWrittenAsTheSpecificationSays) {
  ThreadFacts fifo{7, "a", "measured", true, {.policy = Policy::fifo, .priority = 80}, {0, 1}, 50'000};
  ThreadFacts deadline{8, "b", "middleware", false, {}, {1}, std::nullopt};
  deadline.scheduling = {.policy = Policy::deadline, .runtime_ns = 1, .deadline_ns = 2, .period_ns = 3};
  EXPECT_EQ(
      to_json(std::vector<ThreadFacts>{fifo, deadline}).dump(),
      R"([{"tid":7,"name":"a","role":"measured","stamps":true,"policy":"fifo","priority":80,"cpus":[0,1],)"
      R"("timer_slack_ns":50000},{"tid":8,"name":"b","role":"middleware","stamps":false,"policy":"deadline","priority":0,)"
      R"("runtime_ns":1,"deadline_ns":2,"period_ns":3,"cpus":[1],"timer_slack_ns":null}])");
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

TEST(SetThreads, PassesOverOneThatHasEnded) {
  ThreadFacts ended;
  std::thread([&] { ended.tid = static_cast<int>(gettid()); }).join();
  while (thread_exists(ended.tid)) std::this_thread::yield();
  ended.role = "middleware";
  ThreadFacts own = ended;
  own.tid = static_cast<int>(gettid());
  const std::vector<int> nowhere{100'000};
  EXPECT_NO_THROW(set_threads({ended}, {}, nowhere));
  EXPECT_THROW(set_threads({ended, own}, {}, nowhere), Failure);
  own.role = "service";
  EXPECT_NO_THROW(set_threads({ended, own}, {}, nowhere));
}

}  // namespace
}  // namespace rtmeter
