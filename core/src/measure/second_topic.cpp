#include "measure/second_topic.hpp"

#include <errno.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "errors.hpp"

namespace rtmeter {
namespace {

constexpr std::size_t kStackBytes = 2 << 20;  // middlewares start on it

std::string topic_of(const char* role) { return std::string("second_") + role; }

}  // namespace

void SecondTopic::check(const Json& description, const Config& config) {
  if (!config.second_topic) return;
  const char* place = name_of(config.second_topic->place);
  if (config.measurement != RTM_ROUNDTRIP)
    throw Failure("second_topic", place, std::string("means nothing for ") + name_of(config.measurement),
                  "leave it out; it is for roundtrip");
  std::string known;
  if (const Json* places = description.find("second_topic"))
    for (const Json& one : places->as_array()) {
      if (one.as_string() == place) return;
      known += (known.empty() ? "" : ", ") + one.as_string();
    }
  throw Failure(
      "second_topic", place,
      "this adapter can have " + (known.empty() ? "no second topic" : "it there: " + known + " only"),
      "leave it out, or choose an adapter that `rtmeter adapters` shows with it");
}

SecondTopic::SecondTopic(Bench& bench, void* node)
    : b_(bench), asked_(*bench.config.second_topic), payload_(asked_.payload_bytes), config_(bench.config) {
  config_.payload_bytes = asked_.payload_bytes;
  config_.second_topic.reset();
  const bool same_node = asked_.place == SecondPlace::same_node;
  if (same_node) create_ends(b_.session, node);
  // While it opens, threads of the middleware may come that have its name: it is not yet ours then.
  const std::string unnamed = std::string(program_invocation_short_name).substr(0, 15);
  thread_.emplace(
      unnamed, b_.config.cpus, [this] { live(); }, same_node ? ServiceThread::kSmallStack : kStackBytes);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return phase_ != Phase::opening; });
  if (failure_) std::rethrow_exception(failure_);
  thread_->rename("rtm-second");
}

void SecondTopic::connect() {
  start();
  const std::int64_t give_up_ns = b_.clock.now_ns() + config_.connect_timeout_ns;
  while (received_.load() == 0 && !b_.stop.load()) {
    constexpr std::int64_t kLook = 20'000'000;
    if (b_.clock.now_ns() >= give_up_ns)
      throw Failure(
          "second_topic", name_of(asked_.place),
          "nothing of the server's came within " + std::to_string(config_.connect_timeout_ns / 1'000'000) +
              " ms, although the round trip works",
          "give both ends the same second_topic, with a shorter period; see the middleware's messages");
    if (asked_.place == SecondPlace::same_node && b_.receive != RTM_RECEIVE_LISTENER)
      b_.session.wait(kLook);
    else
      b_.clock.sleep_until_ns(b_.clock.now_ns() + kLook);
  }
}

void SecondTopic::stop() noexcept {
  move_to(Phase::done);
  if (another_) another_->interrupt();
  if (thread_) thread_->join();
  another_.reset();
}

Json SecondTopic::to_json() const {
  return Json(Json::Object{{"place", name_of(asked_.place)},
                           {"payload_bytes", asked_.payload_bytes},
                           {"period_ns", asked_.period_ns},
                           {"sent", sent_.load()},
                           {"refused", refused_.load()},
                           {"received", received_.load()}});
}

Json SecondTopic::doubt() const {
  return Json(Json::Object{
      {"type", "second_topic_silent"},
      {"message", "the " + std::string(name_of(config_.role)) + " sent " + std::to_string(sent_.load()) +
                      " messages of the second topic (" + std::to_string(refused_.load()) +
                      " refused) and received " + std::to_string(received_.load())},
      {"hint",
       "the round trip ran without the traffic that was asked for: measure "
       "longer, or look at the middleware's messages"}});
}

// From the measured thread, its own, or one of the middleware's.
void SecondTopic::on_message(void* user, const rtm_message* /*message*/) {
  static_cast<SecondTopic*>(user)->received_.fetch_add(1, std::memory_order_relaxed);
}

void SecondTopic::create_ends(Session& session, void* node) {
  const rtm_role other = config_.role == RTM_ROLE_CLIENT ? RTM_ROLE_SERVER : RTM_ROLE_CLIENT;
  publisher_ = session.create_publisher(node, topic_of(name_of(config_.role)));
  session.create_subscriber(node, topic_of(name_of(other)), &SecondTopic::on_message, this);
}

void SecondTopic::move_to(Phase phase) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (phase > phase_) phase_ = phase;
  }
  changed_.notify_all();
}

// Its thread, from here on.
void SecondTopic::live() noexcept {
  try {
    open();
  } catch (...) {
    failure_ = std::current_exception();
  }
  move_to(failure_ ? Phase::done : Phase::open);
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return phase_ >= Phase::sending; });
  }
  send_in_time();
}

// Whoever starts an adapter also spins it.
void SecondTopic::open() {
  if (asked_.place == SecondPlace::same_node) return;
  another_ = std::make_unique<Session>(b_.session.adapter(), config_, b_.drive, RTM_RECEIVE_SPIN_ONCE);
  another_->start();
  create_ends(*another_, another_->create_node(topic_of(name_of(config_.role))));
}

// One message a period, or fewer: what is late is not caught up with.
void SecondTopic::send_in_time() noexcept {
  Session& session = another_ ? *another_ : b_.session;
  for (std::int64_t next_ns = b_.clock.now_ns(); !ended_before(next_ns);) {
    const rtm_message message = payload_.message(sent_.load(std::memory_order_relaxed));
    (session.offer(publisher_, message) ? sent_ : refused_).fetch_add(1, std::memory_order_relaxed);
    next_ns = std::max(next_ns + asked_.period_ns, b_.clock.now_ns());
  }
}

// Waits until then; a second adapter is spun meanwhile.
bool SecondTopic::ended_before(std::int64_t at_ns) noexcept {
  for (bool spins = another_ != nullptr;;) {
    const std::int64_t left_ns = at_ns - b_.clock.now_ns();
    std::unique_lock lock(mutex_);
    if (!spins)
      changed_.wait_for(lock, std::chrono::nanoseconds(left_ns), [this] { return phase_ == Phase::done; });
    if (phase_ == Phase::done) return true;
    if (left_ns <= 0) return false;
    lock.unlock();
    if (spins) another_->wait(left_ns);
    spins = spins && another_->refused_calls() == 0;  // one that fails does not wait
  }
}

}  // namespace rtmeter
