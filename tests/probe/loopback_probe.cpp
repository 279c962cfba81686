// A probe whose middleware is a queue in this process: what is published comes back on the topic that the
// other end would answer on. Options plant what tests look for: hang=publish never returns from publishing
// once ten replies came, hang=spin neither and keeps its CPU busy, hang=start and hang=stop never get ready
// or end, hang=interrupt takes a second to be interrupted; deaf=yes loses what is not the round trip's.
// executor=two: spinning dispatches on two threads in turn, which end with it; executor=strays: these take
// the normal policy. A listener is a thread of its own; pings=N: a server is greeted and pinged N times
// there, a page of memory being touched with each, and it says "pinged"; listeners=2: by two threads in turn.
// On standard error it says when it hangs ("hangs"), when it is stopped meanwhile ("stopped under an
// interrupt") and when three messages of a second topic have come ("second topic"). RTMETER_TEST_FAST=yes:
// time flies.
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rtmeter/adapter.hpp"
#include "rtmeter/probe.hpp"

namespace {

std::atomic<int>& instances() {
  static std::atomic<int> count{0};
  return count;
}

// That are under way.
std::atomic<int>& interrupts() {
  static std::atomic<int> count{0};
  return count;
}

std::string answered_on(const std::string& topic) {
  return topic == "ping" ? "pong" : topic == "second_client" ? "second_server" : "nobody";
}

struct Message {
  std::string topic;
  std::uint64_t sequence;
  std::vector<std::uint8_t> payload;
};

struct Subscriber {
  std::string topic;
  rtm_on_message on_message;
  void* user;
};

// Memory of which each touch() faults.
class FreshPages {
 public:
  explicit FreshPages(std::size_t count)
      : bytes_(count * kPage), next_(static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    madvise(next_, bytes_, MADV_NOHUGEPAGE);
  }
  void touch() noexcept {
    *next_ = 1;
    next_ += kPage;
  }

 private:
  static constexpr std::size_t kPage = 65'536;  // as large as they come
  std::size_t bytes_;
  char* next_;
};

class Loopback final : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink) {
    sink.put("name", "loopback").put("version", "1").put("middleware", "a queue");
    sink.put("middleware_version", "1").put("measures", "roundtrip").put("receives.roundtrip", "spin_once");
    for (const char* way : {"spin", "listener"}) sink.put("receives.roundtrip", way);
    for (const char* place : {"same_node", "same_process"}) sink.put("second_topic", place);
  }

  explicit Loopback(const rtm_run& run)
      : hang_(rtmeter::option_or(run, "hang", "no")), hangs_(hang_ == "publish" || hang_ == "spin"),
        deaf_(rtmeter::option_or(run, "deaf", "no") == "yes"),
        executor_(rtmeter::option_or(run, "executor", "one")),
        has_listener_(run.receive == RTM_RECEIVE_LISTENER), pings_(number(run, "pings", "0")),
        listeners_(number(run, "listeners", "1")), fresh_(static_cast<std::size_t>(pings_) + 1),
        room_(run.payload_bytes) {
    ++instances();
    if (hang_ == "start") hang();
  }
  ~Loopback() override {
    if (hang_ == "stop") hang();
    if (interrupts().load() > 0) std::fputs("stopped under an interrupt\n", stderr);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    --instances();
  }

  void describe(rtmeter::Sink& sink) const override {
    sink.put("instances", std::to_string(instances().load()));
    sink.put("room", std::to_string(room_));
  }

  void* create_publisher(void* /*node*/, const std::string& topic) override {
    return &topics_.emplace_back(answered_on(topic));
  }
  void* create_subscriber(void* /*node*/, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    subscribers_.push_back({topic, on_message, user});
    for (int own = static_cast<int>(threads_.size()); has_listener_ && own < listeners_; ++own)
      threads_.emplace_back([this, own] { dispatch(own, listeners_, ends_); });
    return this;
  }

  int publish(void* publisher, const rtm_message& message) noexcept override {
    const std::string& topic = *static_cast<std::string*>(publisher);
    if (hangs_ && replies_.load() >= 10) hang();
    if (message.bytes > room_) return -1;
    if (deaf_ && topic != "pong") return 0;
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back({topic, message.sequence, {message.data, message.data + message.bytes}});
    changed_.notify_all();
    return 0;
  }

  int spin(std::int64_t timeout_ns) noexcept override {
    if (has_listener_) return be_pinged();
    if (executor_ == "one") return wait(std::min(timeout_ns, kHour));
    const auto one_of_two = [this](int own) { dispatch(own, 2, interrupted_); };
    std::thread both[] = {std::thread(one_of_two, 0), std::thread(one_of_two, 1)};
    for (std::thread& thread : both) thread.join();
    const std::lock_guard<std::mutex> lock(mutex_);
    interrupted_ = false;
    return 0;
  }
  int wait(std::int64_t timeout_ns) noexcept override {
    std::deque<Message> taken;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                        [this] { return interrupted_ || !queue_.empty(); });
      interrupted_ = false;
      taken.swap(queue_);
    }
    for (const Message& message : taken) deliver(message);
    return 0;
  }
  void interrupt() noexcept override {
    ++interrupts();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      interrupted_ = true;
      changed_.notify_all();
    }
    if (hang_ == "interrupt") usleep(1'000'000);
    --interrupts();
  }

 private:
  static constexpr std::int64_t kHour = 3600000000000;

  static int number(const rtm_run& run, const char* key, const char* otherwise) {
    return std::stoi(rtmeter::option_or(run, key, otherwise));
  }

  // A listener's spin: others do the work, until it is interrupted.
  int be_pinged() noexcept {
    std::unique_lock<std::mutex> lock(mutex_);
    for (int k = pings_ > 0 ? -1 : 0; k < pings_; ++k)
      queue_.push_back({"ping", k < 0 ? RTM_SEQUENCE_HELLO : static_cast<std::uint64_t>(k), {}});
    changed_.notify_all();
    changed_.wait(lock, [this] { return interrupted_; });
    interrupted_ = false;
    return 0;
  }

  // One of several threads: messages in turn, until it is to end.
  void dispatch(int own, int of, const bool& ends) noexcept {
    pthread_setname_np(pthread_self(), own == 0 ? "loop-0" : "loop-1");
    const sched_param normal{};
    if (executor_ == "strays") pthread_setschedparam(pthread_self(), SCHED_OTHER, &normal);
    for (std::unique_lock<std::mutex> lock(mutex_);; turn_ = (own + 1) % of, changed_.notify_all()) {
      changed_.wait(lock, [&] { return ends || (!queue_.empty() && turn_ == own); });
      if (ends) return changed_.notify_all();
      const Message message = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      deliver(message);
      lock.lock();
    }
  }

  void deliver(const Message& message) noexcept {
    for (const Subscriber& subscriber : subscribers_) {
      if (subscriber.topic != message.topic) continue;
      const rtm_message view{message.sequence, message.payload.data(),
                             static_cast<std::uint32_t>(message.payload.size())};
      subscriber.on_message(subscriber.user, &view);
      tell(message);
    }
  }

  // Ignores everything, for good.
  [[noreturn]] void hang() const noexcept {
    std::fputs("hangs\n", stderr);
    while (hang_ == "spin")
      for (volatile int i = 0; i < 1000; i = i + 1) {
      }
    for (;;) pause();
  }

  void tell(const Message& message) noexcept {
    if (message.topic == "ping" && pings_ > 0) {
      fresh_.touch();
      if (message.sequence + 1 == static_cast<std::uint64_t>(pings_)) std::fputs("pinged\n", stderr);
    } else if (message.topic == "pong") {
      if (message.sequence != RTM_SEQUENCE_HELLO) ++replies_;
    } else if (message.topic != "ping" && ++second_ == 3) {
      std::fputs("second topic\n", stderr);
    }
  }

  const std::string hang_;
  const bool hangs_, deaf_;
  const std::string executor_;
  const bool has_listener_;
  const int pings_, listeners_;
  FreshPages fresh_;
  const std::uint32_t room_;
  std::deque<std::string> topics_;
  std::vector<Subscriber> subscribers_;
  std::atomic<int> replies_{0}, second_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> queue_;
  std::vector<std::thread> threads_;  // a listener's
  bool interrupted_ = false, ends_ = false;
  int turn_ = 0;  // whose the next message is
};

// A hundred times as fast as the machine's.
class FastClock final : public rtmeter::Clock {
 public:
  std::int64_t now_ns() noexcept override { return machine_.now_ns() * kTimes; }
  void sleep_until_ns(std::int64_t at_ns) noexcept override { machine_.sleep_until_ns(at_ns / kTimes); }
  std::int64_t reach_ns(std::int64_t release_ns) noexcept override {
    return machine_.reach_ns(release_ns / kTimes) * kTimes;
  }
  bool scripted() const noexcept override { return false; }
  std::int64_t first_release_ns(std::int64_t /*period_ns*/) noexcept override { return now_ns(); }

 private:
  static constexpr std::int64_t kTimes = 100;
  const std::atomic<bool> never_{false};
  rtmeter::MonotonicClock machine_{never_};
};

}  // namespace

int main(int argc, char** argv) {
  FastClock fast;
  const rtm_adapter* adapter = rtmeter::adapter_table<Loopback>();
  if (std::getenv("RTMETER_TEST_FAST") != nullptr) return rtmeter::probe_main(argc, argv, *adapter, fast);
  return rtm_probe_main(argc, argv, adapter);
}
