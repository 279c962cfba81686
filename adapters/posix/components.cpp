// Cycle: two components of one process, each with mailboxes; every component on a thread of its own, or
// all on the thread that measures, which has a timer besides.
#include <pthread.h>

#include <array>
#include <deque>
#include <utility>

#include "mapping.hpp"
#include "messaging.hpp"
#include "ring.hpp"
#include "rtmeter/event_count.hpp"
#include "system.hpp"

namespace rtmeter_posix {
namespace {

struct Mailbox {
  Mapping memory;
  Ring messages;
  Subscription subscription;
};

// What one thread serves: its mailboxes, what wakes it when there is mail, and a timer, if that is started.
// Mail goes first: a cycle ends before the next one begins.
class Executor final : public Timer {
 public:
  void add(Mailbox* box) {
    const std::size_t count = box_count_.load(std::memory_order_relaxed);
    if (count == boxes_.size())
      throw rtmeter::SetupError("topic", "", "a component has at most 8 subscriptions", "use fewer");
    boxes_[count] = box;
    box_count_.store(count + 1, std::memory_order_release);  // its thread may run already
  }
  bool put(Mailbox* box, const rtm_message& message) noexcept {
    if (!box->messages.put(message)) return false;
    event_.notify();
    return true;
  }

 private:
  int start(std::int64_t /*first_ns*/) noexcept override { return 0; }
  int collect(std::int64_t /*timeout_ns*/) noexcept override {
    expired_until(now_ns());
    return 0;
  }

  int block(std::int64_t timeout_ns) noexcept override {
    const std::uint32_t ticket = event_.ticket();
    if (interrupted()) return 0;
    for (std::size_t i = 0; i < box_count_.load(std::memory_order_acquire); ++i)
      if (!boxes_[i]->messages.empty()) return 0;
    const std::int64_t due_ns = next_due_ns();
    if (due_ns == kNever) return event_.wait(ticket, timeout_ns);
    const std::int64_t now = now_ns();
    if (due_ns <= now) return 0;
    return event_.wait_until(ticket, timeout_ns < due_ns - now ? now + timeout_ns : due_ns);
  }

  int dispatch(int at_most) noexcept override {
    int callbacks = deliver(at_most);
    if (callbacks < at_most && next_due_ns() != kNever) {
      const int ticks = Timer::dispatch(at_most - callbacks);
      if (ticks < 0) return ticks;
      callbacks += ticks;
    }
    return callbacks;
  }

  int deliver(int at_most) noexcept {
    int callbacks = 0;
    for (std::size_t i = 0; i < box_count_.load(std::memory_order_acquire); ++i) {
      const Subscription& s = boxes_[i]->subscription;
      const auto call = [&s](const rtm_message& m) noexcept { s.on_message(s.user, &m); };
      while (callbacks < at_most && !interrupted() && boxes_[i]->messages.take(call)) ++callbacks;
    }
    return callbacks;
  }

  void wake() noexcept override { event_.notify(); }

  rtmeter::ThreadEventCount event_{};
  std::array<Mailbox*, 8> boxes_{};
  std::atomic<std::size_t> box_count_{0};
};

// An executor with a thread of its own, which has the creator's policy, priority and affinity.
class ExecutorThread {
 public:
  explicit ExecutorThread(const std::string& name) {
    constexpr std::size_t kStackBytes = 256 << 10;  // mlockall takes all of it
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    errno = pthread_create(&thread_, &attributes, &ExecutorThread::run, this);
    pthread_attr_destroy(&attributes);
    if (errno != 0)
      throw system_error("components", "two_threads", "cannot start a thread",
                         "raise the limits of threads, memory and real-time priority (ulimit -u, -l, -r)");
    pthread_setname_np(thread_, ("posix-" + name).substr(0, 15).c_str());
  }
  ExecutorThread(const ExecutorThread&) = delete;
  ExecutorThread& operator=(const ExecutorThread&) = delete;
  ~ExecutorThread() {
    ended_.store(true);
    executor_.interrupt();
    pthread_join(thread_, nullptr);
  }
  Executor& executor() noexcept { return executor_; }

 private:
  static void* run(void* self_pointer) noexcept {
    auto* self = static_cast<ExecutorThread*>(self_pointer);
    while (!self->ended_.load()) self->executor_.spin(-1);
    return nullptr;
  }

  Executor executor_;
  std::atomic<bool> ended_{false};
  pthread_t thread_{};
};

class Components final : public Messaging {
 public:
  explicit Components(const rtm_run& run)
      : two_threads_(run.components_asked == RTM_TWO_THREADS), max_bytes_(run.payload_bytes) {}

  // The first component is the measured thread's.
  void* create_node(const std::string& name) override {
    if (nodes_++ == 0 || !two_threads_) return &main_;
    return &threads_.emplace_back(name).executor();
  }

  void* create_publisher(void* /*node*/, const std::string& topic) override {
    Topic& t = topic_of(topic);
    if (std::exchange(t.has_publisher, true))
      throw rtmeter::SetupError("topic", topic, "a mailbox takes mail from one publisher",
                                "use another topic");
    return &t;
  }

  void* create_subscriber(void* node, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    Topic& t = topic_of(topic);
    if (t.reader != nullptr)
      throw rtmeter::SetupError("topic", topic, "a topic has one mailbox", "use another topic");
    t.box.memory = Mapping(Ring::size_of(max_bytes_));
    if (!t.box.memory)
      throw system_error("payload_bytes", std::to_string(max_bytes_), "no memory for a mailbox",
                         "choose a smaller payload");
    t.box.messages = Ring(t.box.memory.data(), max_bytes_);
    t.box.subscription = {on_message, user};
    t.reader = static_cast<Executor*>(node);
    t.reader->add(&t.box);
    return &t;
  }

  void describe(rtmeter::Sink& sink) const override {
    sink.put("qos.reliability", "reliable");
    sink.put("qos.history",
             "queue of " + std::to_string(Ring::slots_for(max_bytes_)) + " messages, refusing more");
  }

  int publish(void* publisher, const rtm_message& message) noexcept override {
    auto* topic = static_cast<Topic*>(publisher);
    return topic->reader != nullptr && topic->reader->put(&topic->box, message) ? 0 : -1;
  }

  Loop& loop() noexcept override { return main_; }
  Timer* timer() noexcept override { return &main_; }

 private:
  struct Topic {
    std::string name;
    bool has_publisher = false;
    Mailbox box;
    Executor* reader = nullptr;
  };

  Topic& topic_of(const std::string& name) {
    for (Topic& topic : topics_)
      if (topic.name == name) return topic;
    topics_.emplace_back();
    topics_.back().name = name;
    return topics_.back();
  }

  const bool two_threads_;
  const std::size_t max_bytes_;
  int nodes_ = 0;
  Executor main_;
  std::deque<Topic> topics_;
  std::deque<ExecutorThread> threads_;  // last: their threads end before the mailboxes go
};

}  // namespace

std::unique_ptr<Messaging> make_components(const rtm_run& run) { return std::make_unique<Components>(run); }

}  // namespace rtmeter_posix
