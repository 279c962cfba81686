// The middleware that the template measures, so that the template runs: topics and timers of one process,
// dispatched by whoever spins, with a mutex and a condition variable. Yours takes its place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace tiny {

using Clock = std::chrono::steady_clock;

struct Message {
  std::uint64_t sequence;
  std::vector<std::uint8_t> data;
};

struct Topic {
  std::function<void(const Message&)> subscriber;
  std::deque<Message> messages;  // not delivered yet
};

struct Timer {
  std::chrono::nanoseconds period;
  bool repeats;
  std::function<void(Clock::time_point due)> callback;
  std::optional<Clock::time_point> due;
};

class Context {
 public:
  // Each topic keeps its last `depth` messages.
  Context(std::size_t depth, bool timers_first) : depth_(depth), timers_first_(timers_first) {}

  void add(Topic& topic) { topics_.push_back(&topic); }
  void add(Timer& timer) { timers_.push_back(&timer); }

  void publish(Topic& topic, Message message) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (topic.messages.size() == depth_) topic.messages.pop_front();
    topic.messages.push_back(std::move(message));
    changed_.notify_all();
  }
  void start(Timer& timer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    timer.due = Clock::now() + timer.period;
    changed_.notify_all();
  }
  void interrupt() {
    const std::lock_guard<std::mutex> lock(mutex_);
    interrupted_ = true;
    changed_.notify_all();
  }

  // Runs the callback that is ready next, waiting for one no longer than until. False if there was none,
  // or after interrupt().
  bool spin_once(Clock::time_point until) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      if (interrupted_) return interrupted_ = false;
      if (const Callback callback = take_ready()) {
        lock.unlock();
        callback();
        return true;
      }
      if (Clock::now() >= until) return false;
      changed_.wait_until(lock, std::min(until, next_due()));
    }
  }

 private:
  using Callback = std::function<void()>;

  Callback take_ready() {
    Callback first = timers_first_ ? take_timer() : take_message();
    return first ? first : timers_first_ ? take_message() : take_timer();
  }
  Callback take_timer() {
    for (Timer* timer : timers_) {
      if (!timer->due || *timer->due > Clock::now()) continue;
      const Clock::time_point due = *timer->due;
      timer->due.reset();
      if (timer->repeats) timer->due = due + timer->period;
      return [timer, due] { timer->callback(due); };
    }
    return nullptr;
  }
  Callback take_message() {
    for (Topic* topic : topics_) {
      if (topic->messages.empty() || !topic->subscriber) continue;
      Callback callback = [topic, m = std::move(topic->messages.front())] { topic->subscriber(m); };
      topic->messages.pop_front();
      return callback;
    }
    return nullptr;
  }
  Clock::time_point next_due() const {
    Clock::time_point next = Clock::time_point::max();
    for (const Timer* timer : timers_) next = std::min(next, timer->due.value_or(next));
    return next;
  }

  const std::size_t depth_;
  const bool timers_first_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Topic*> topics_;
  std::vector<Timer*> timers_;
  bool interrupted_ = false;
};

}  // namespace tiny
