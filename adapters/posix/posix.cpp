#include "posix.hpp"

#include <sys/utsname.h>

#include <functional>
#include <utility>
#include <vector>

namespace rtmeter_posix {
namespace {

// An option of this adapter: the makes it can choose, the first by default.
template <typename Product>
struct Choice {
  const char* option;
  const char* about;
  std::vector<std::pair<std::string, std::function<Product(const rtm_run&)>>> makes;

  std::string names() const {
    std::string all;
    for (const auto& make : makes) all += (all.empty() ? "" : "|") + make.first;
    return all;
  }
  void describe(rtmeter::Sink& sink) const {
    sink.put(std::string("option.") + option, names() + ": " + about);
  }

  // What the run asks for; tells option and value.
  Product make(const rtm_run& run, std::pair<std::string, std::string>* in_effect) const {
    *in_effect = {option, rtmeter::option_or(run, option, makes.front().first.c_str())};
    for (const auto& [name, product] : makes)
      if (name == in_effect->second) return product(run);
    throw rtmeter::SetupError(std::string("option ") + option, in_effect->second, "no such choice",
                              "choose one of " + names());
  }
};

using MadeTimer = std::unique_ptr<Timer>;
using MadeMessaging = std::unique_ptr<Messaging>;

const Choice<MadeTimer>& timers() {
  static const Choice<MadeTimer> choice{
      "timer",
      "the system calls that the timer is made of",
      {{"clock_nanosleep", [](auto&) { return make_clock_nanosleep_timer(); }},
       {"timerfd", [](auto&) { return make_timerfd_timer(); }},
       {"posix", [](auto&) { return make_posix_timer(); }}}};
  return choice;
}

const Choice<MadeMessaging>& transports() {
  static const Choice<MadeMessaging> choice{
      "transport",
      "what carries a round trip (shm_poll needs a CPU for each end)",
      {{"udp", make_udp},
       {"unix", make_unix},
       {"shm_futex", [](const rtm_run& run) { return make_shared_memory(run, false); }},
       {"shm_poll", [](const rtm_run& run) { return make_shared_memory(run, true); }}}};
  return choice;
}

}  // namespace

void Posix::describe_static(rtmeter::Sink& sink) {
  utsname system{};
  uname(&system);
  sink.put("name", "posix").put("version", "1");
  sink.put("middleware", "Linux system calls").put("middleware_version", system.release);
  for (const char* what : {"wakeup", "timer.one_shot", "timer.periodic", "roundtrip", "cycle"})
    sink.put("measures", what);
  for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.timer", drive);
  for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.cycle", drive);
  for (const char* components : {"one_thread", "two_threads"}) sink.put("components", components);
  sink.put("brings", "posix-b: the second component of a cycle with two_threads");
  timers().describe(sink);
  transports().describe(sink);
  for (const char* way : {"spin", "spin_once", "poll"}) sink.put("receives.roundtrip", way);
  for (const char* way : {"spin", "spin_once", "poll"}) sink.put("receives.cycle", way);
  for (const char* transport : {"unix", "shm_futex", "shm_poll"}) sink.put("same_host.transport", transport);
  sink.put("poll.transport", "shm_poll").put("background", "cycle components=two_threads");
  sink.put("option.address",
           "udp: IP[:port] where the server listens, 127.0.0.1 and a free port by default; unix: its path or "
           "@name, @rtmeter-SESSION by default");
  sink.put("option.dscp", "udp: the field DSCP of what is sent, 0 to 63, for switches that heed it");
  sink.put("option.priority", "udp: SO_PRIORITY of what is sent, 0 to 15, for this machine's qdiscs");
  sink.put("option.endpoint", "client: the server's endpoint, as the server's ready line gives it");
}

Posix::Posix(const rtm_run& run)
    : overrun_(run.overrun_asked < 0 ? RTM_CATCH_UP : static_cast<rtm_overrun>(run.overrun_asked)) {
  if (run.measurement == RTM_TIMER) {
    timer_ = timers().make(run, &in_effect_);
    loop_ = timer_.get();
  } else if (run.measurement == RTM_ROUNDTRIP || run.measurement == RTM_CYCLE) {
    messaging_ = run.measurement == RTM_CYCLE ? make_components(run) : transports().make(run, &in_effect_);
    loop_ = &messaging_->loop();
  }
}

void Posix::describe(rtmeter::Sink& sink) const {
  if (!in_effect_.first.empty()) sink.put(in_effect_.first, in_effect_.second);
  if (messaging_ != nullptr) messaging_->describe(sink);
}

void* Posix::create_node(const std::string& name) {
  return messaging_ == nullptr ? this : messaging_->create_node(name);
}

void* Posix::create_timer(void* node, const rtm_timer_spec& spec, rtm_timer_traits& traits) {
  Timer* timer = timer_ != nullptr ? timer_.get() : messaging_ != nullptr ? messaging_->timer() : nullptr;
  if (timer == nullptr) return Adapter::create_timer(node, spec, traits);
  if (std::exchange(has_timer_, true))
    throw rtmeter::SetupError("timer", "a second one", "this adapter makes one timer a run",
                              "measure one timer");
  traits = timer->configure(spec, overrun_);
  return timer;
}

void* Posix::create_publisher(void* node, const std::string& topic) {
  return messaging_ == nullptr ? Adapter::create_publisher(node, topic)
                               : messaging_->create_publisher(node, topic);
}

void* Posix::create_subscriber(void* node, const std::string& topic, rtm_on_message on_message, void* user) {
  return messaging_ == nullptr ? Adapter::create_subscriber(node, topic, on_message, user)
                               : messaging_->create_subscriber(node, topic, on_message, user);
}

}  // namespace rtmeter_posix
