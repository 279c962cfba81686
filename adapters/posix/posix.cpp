#include "posix.hpp"

#include <sys/utsname.h>

#include <utility>

#include "options.hpp"

namespace rtmeter_posix {

void Posix::describe_static(rtmeter::Sink& sink) {
  utsname system{};
  uname(&system);
  sink.put("name", "posix").put("version", "1").put("wire", "posix");
  sink.put("middleware", "Linux system calls").put("middleware_version", system.release);
  for (const char* what :
       {"wakeup", "timer.one_shot", "timer.periodic", "roundtrip", "request", "cycle", "chain", "discovery"})
    sink.put("measures", what);
  sink.put("matches", "publisher").put("kernel_stamps", "roundtrip");
  sink.put("interfaces", "service");
  for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.timer", drive);
  for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.cycle", drive);
  for (const char* components : {"one_thread", "two_threads"}) sink.put("components", components);
  sink.put("brings", "posix-b: the second component of a cycle with two_threads");
  for (const char* way : {"spin", "spin_once", "poll"}) sink.put("receives.roundtrip", way);
  for (const char* way : {"spin", "spin_once", "poll"}) sink.put("receives.request", way);
  for (const char* way : {"spin", "spin_once", "poll"}) sink.put("receives.cycle", way);
  for (const char* what : {"receives.chain", "receives.discovery"}) sink.put(what, "spin_once");
  for (const char* transport : {"unix", "shm_futex", "shm_poll", "topics"})
    sink.put("same_host.transport", transport);
  sink.put("same_host.stream", "unix");
  for (const char* what : {"subscribers transport=topics", "background_nodes transport=topics"})
    sink.put("beside", what);
  sink.put("poll.transport", "shm_poll").put("background", "cycle components=two_threads");
  kOptions.describe(sink);
}

Posix::Posix(const rtm_run& run)
    : overrun_(run.overrun_asked < 0 ? RTM_CATCH_UP : static_cast<rtm_overrun>(run.overrun_asked)) {
  if (run.measurement == RTM_TIMER) {
    in_effect_ = {kOptions.timer.key(), kOptions.timer.word_of(run)};
    timer_ = kOptions.timer.of(run)();
    loop_ = timer_.get();
  } else if (run.measurement == RTM_CHAIN || run.measurement == RTM_DISCOVERY) {
    messaging_ = run.measurement == RTM_CHAIN ? make_topics(run) : make_everybody(run);
    loop_ = &messaging_->loop();
  } else if (run.measurement == RTM_REQUEST) {
    in_effect_ = {kOptions.stream.key(), kOptions.stream.word_of(run)};
    stream_ = kOptions.stream.of(run)(run);
    loop_ = stream_.get();
  } else if (run.measurement == RTM_ROUNDTRIP || run.measurement == RTM_CYCLE) {
    const bool is_cycle = run.measurement == RTM_CYCLE;
    if (!is_cycle) in_effect_ = {kOptions.transport.key(), kOptions.transport.word_of(run)};
    messaging_ = is_cycle ? make_components(run) : kOptions.transport.of(run)(run);
    loop_ = &messaging_->loop();
  }
}

void Posix::describe(rtmeter::Sink& sink) const {
  if (!in_effect_.first.empty()) sink.put(in_effect_.first, in_effect_.second);
  if (messaging_ != nullptr) messaging_->describe(sink);
  if (stream_ != nullptr) stream_->describe(sink);
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

void* Posix::create_client(void* node, const std::string& service, rtm_on_reply on_reply, void* user) {
  return stream_ == nullptr ? Adapter::create_client(node, service, on_reply, user)
                            : stream_->create_client(service, on_reply, user);
}

void* Posix::create_server(void* node, const std::string& service, rtm_on_message on_request, void* user) {
  return stream_ == nullptr ? Adapter::create_server(node, service, on_request, user)
                            : stream_->create_server(service, on_request, user);
}

}  // namespace rtmeter_posix
