#include "orocos.hpp"

#include <rtt/os/startstop.h>
#include <rtt/rtt-config.h>

#include <cstdlib>
#include <sstream>

#include "options.hpp"

namespace rtmeter_orocos {
namespace {

using rtmeter::SetupError;

constexpr char kThreadPrefix[] = "orocos-";

}  // namespace

// RTT would leave a file orocos.log in the folder it is started in.
Runtime::Runtime() {
  setenv("ORO_LOGFILE", "/dev/null", 0);
  static char name[] = "rtmeter";
  char* arguments[] = {name, nullptr};
  if (__os_init(1, arguments) != 0)
    throw SetupError("adapter", "orocos", "RTT does not start", "see its own messages above");
}

Runtime::~Runtime() { __os_exit(); }

void Orocos::describe_static(rtmeter::Sink& sink) {
  sink.put("name", "orocos").put("version", "1").put("middleware", "OROCOS RTT, gnulinux");
  sink.put("middleware_version", std::to_string(RTT_VERSION_MAJOR) + "." + std::to_string(RTT_VERSION_MINOR) +
                                     "." + std::to_string(RTT_VERSION_PATCH));
  for (const char* what : {"wakeup", "timer.periodic", "cycle"}) sink.put("measures", what);
  for (const char* measurement : {"drives.timer", "drives.cycle"})
    for (const char* drive : {"spin", "sleep_then_spin_some"}) sink.put(measurement, drive);
  for (const char* components : {"two_threads", "one_thread"}) sink.put("components", components);
  sink.put("brings", "orocos-*: activities").put("brings", "TimerTh*: of all that run by PeriodicActivity");
  kOptions.describe(sink);
}

Orocos::Orocos(const rtm_run& run) : run_(run), activities_(run) {
  one_thread_ = run.measurement == RTM_CYCLE && run.components_asked == RTM_ONE_THREAD;
  if (run.measurement == RTM_CYCLE) policy_ = checked_policy();
  if (run.measurement == RTM_WAKEUP) return;
  if (timer_starts()) {
    activity_ = kOptions.activity.of(run, {"Activity", "PeriodicActivity"});
    relative_ = kOptions.relative_wait.of(run);
  } else {
    activity_ = kOptions.activity.of(run, {"SlaveActivity"});
    if (kOptions.relative_wait.given(run))
      throw kOptions.relative_wait.error(kOptions.relative_wait.word_of(run),
                                         "a SlaveActivity waits for nothing: the measured thread sleeps",
                                         "leave it out, or choose drive spin");
  }
}

Orocos::~Orocos() {
  for (const auto& component : components_) component->getActivity()->stop();  // before any of them goes
}

RTT::ConnPolicy Orocos::checked_policy() const {
  const std::string type = kOptions.connection.of(run_);
  const int locking = kOptions.lock.of(run_);
  if (locking == RTT::ConnPolicy::UNSYNC && !one_thread_)
    throw kOptions.lock.error("unsync", "two threads may not share an unsynchronised connection",
                              "choose components one_thread, or option lock=locked");
  if (run_.reliability == RTM_RELIABLE && type != "buffer")
    throw SetupError("reliability", "reliable", "what is new takes the place of what was not read",
                     "choose best_effort, or option connection=buffer");
  const int depth = static_cast<int>(run_.history_depth);
  return type == "buffer"            ? RTT::ConnPolicy::buffer(depth, locking)
         : type == "circular_buffer" ? RTT::ConnPolicy::circularBuffer(depth, locking)
                                     : RTT::ConnPolicy::data(locking, false);
}

RTT::base::ActivityInterface* Orocos::activity_for(Component* component, const std::string& thread) {
  Component* const first = components_.front().get();
  if (run_.measurement == RTM_WAKEUP) return activities_.make(thread, 0, false);
  if (component == first && activity_ == "Activity")
    return activities_.make(thread, run_.period_ns, relative_);
  if (component == first && activity_ == "PeriodicActivity")
    return activities_.make_periodic(run_.period_ns, relative_);
  if (component != first && !one_thread_) return activities_.make(thread, 0, false);
  if (timer_starts())
    first->execute_after_hook(component);
  else
    own_.push_back(component);
  return new Slave(signals_.called);
}

void* Orocos::create_node(const std::string& name) {
  components_.emplace_back(new Component(name, signals_));
  Component* component = components_.back().get();
  if (!component->setActivity(activity_for(component, kThreadPrefix + name)))
    throw SetupError("adapter", "orocos", "RTT refuses an activity for component " + name,
                     "see its own messages above");
  signals_.tells_of_messages = own_.empty();
  if (run_.measurement == RTM_WAKEUP) activities_.enforce();
  return component;
}

void* Orocos::create_timer(void* node, const rtm_timer_spec& spec, rtm_timer_traits& traits) {
  auto* component = static_cast<Component*>(node);
  // Only a PeriodicActivity shows when its thread waits until, and only an absolute wait keeps to a grid.
  const bool reports = activity_ == "PeriodicActivity" && !relative_;
  component->call_back(spec, reports ? &component->getActivity()->thread()->getTask()->periodMark : nullptr);
  traits = {RTM_EVERY_TICK, RTM_CATCH_UP, reports ? 1 : 0};
  activities_.enforce();
  return component;
}

Message Orocos::sample() const {
  Message message;
  message.payload.resize(run_.payload_bytes);
  return message;
}

void* Orocos::create_publisher(void* node, const std::string& topic) {
  auto* component = static_cast<Component*>(node);
  publishers_.push_back({topic, component->add_output(topic, sample()), sample()});
  return &publishers_.back();
}

void* Orocos::create_subscriber(void* node, const std::string& topic, rtm_on_message on_message, void* user) {
  auto* component = static_cast<Component*>(node);
  RTT::InputPort<Message>& input = component->add_input(topic, sample(), on_message, user);
  for (Publisher& publisher : publishers_) {
    if (publisher.topic != topic) continue;
    std::ostringstream words;
    words << policy_;
    if (!publisher.port.createConnection(input, policy_))
      throw kOptions.connection.error(words.str(), "RTT refuses the connection of " + topic,
                                      "see its own messages above");
    connections_.push_back(topic + ": " + words.str());
  }
  const bool starts_with_timer = timer_starts() && component == components_.front().get();
  if (!starts_with_timer && !component->isRunning() && !component->start())
    throw SetupError("adapter", "orocos", "RTT does not start component " + component->getName(),
                     "see its own messages above");
  if (!starts_with_timer) activities_.enforce();
  return component;
}

void Orocos::describe(rtmeter::Sink& sink) const {
  for (const auto& component : components_)
    sink.put("activities", component->getName() + ": " + in_words(*component->getActivity()));
  activities_.describe(sink);
  if (timer_starts()) sink.put("wait", relative_ ? "relative" : "absolute");
  for (const std::string& connection : connections_) sink.put("connections", connection);
  if (run_.measurement == RTM_CYCLE) {
    const bool refuses = policy_.type == RTT::ConnPolicy::BUFFER;
    sink.put("qos.reliability", refuses ? "reliable" : "best_effort");
    sink.put("qos.history", refuses ? "queue, refusing more" : "keep_last");
    sink.put("qos.depth", std::to_string(policy_.type == RTT::ConnPolicy::DATA ? 1 : policy_.size));
  }
  if (signals_.broken.load()) sink.put("broken", signals_.why_broken);
}

int Orocos::arm(void* timer, std::int64_t /*now_ns*/) {
  return static_cast<Component*>(timer)->start() ? 0 : -1;
}

int Orocos::publish(void* publisher_pointer, const rtm_message& message) {
  if (signals_.broken.load()) return RTM_BROKEN;
  auto* publisher = static_cast<Publisher*>(publisher_pointer);
  publisher->next.number = message.sequence;
  publisher->next.payload.assign(message.data, message.data + message.bytes);  // within its capacity
  return publisher->port.write(publisher->next) == RTT::WriteSuccess ? 0 : -1;
}

int Orocos::spin(std::int64_t timeout_ns) {
  const std::uint32_t ticket = signals_.ended.ticket();
  if (!signals_.interrupted.load() && !signals_.broken.load() && signals_.ended.wait(ticket, timeout_ns) != 0)
    return -1;
  signals_.interrupted.store(false);
  return result();
}

// What happened since the last call counts.
int Orocos::wait(std::int64_t timeout_ns) {
  const bool ended = signals_.interrupted.exchange(false) || signals_.broken.load();
  if (!ended && signals_.called.ticket() == heard_ && signals_.called.wait(heard_, timeout_ns) != 0)
    return -1;
  heard_ = signals_.called.ticket();
  return spin_some();
}

int Orocos::spin_some() {
  for (Component* component : own_) component->execute();
  return result();
}

void Orocos::interrupt() {
  signals_.interrupted.store(true);
  signals_.end();
}

}  // namespace rtmeter_orocos
