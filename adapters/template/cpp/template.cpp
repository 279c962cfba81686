// An adapter to copy; docs/add-a-middleware.md goes through it. An adapter makes timers, publishes,
// receives and spins. The core owns time: it stamps, schedules and records. What each method has to do
// stands in core/include/rtmeter/adapter.h; what a middleware cannot do is simply left out.
// The middleware here is the toy of tiny.hpp: put yours in its place.
#include <chrono>
#include <deque>
#include <map>
#include <string>

#include "rtmeter/adapter.hpp"
#include "tiny.hpp"

namespace {

using std::chrono::nanoseconds;

// All times of the contract are CLOCK_MONOTONIC, which is what steady_clock is on Linux.
std::int64_t to_ns(tiny::Clock::time_point time) { return nanoseconds(time.time_since_epoch()).count(); }

// A timeout as a moment. Timeouts may be as long as INT64_MAX: never.
tiny::Clock::time_point after(std::int64_t timeout_ns) {
  constexpr nanoseconds kDay = std::chrono::hours(24);
  return tiny::Clock::now() + std::min(nanoseconds(timeout_ns), kDay);
}

// One declaration of each option: what `rtmeter adapters` lists, what is read, and what is refused.
struct Options : rtmeter::OptionSet {
  rtmeter::ChoiceOf<bool> timers_first{*this,
                                       "first",
                                       {{"timers", true}, {"messages", false}},
                                       "what is dispatched first when both are ready"};
};

class Template final : public rtmeter::Adapter {
 public:
  // What is known before the middleware starts: `rtmeter adapters` shows it. `measures` lists what the
  // middleware has (a roundtrip too, if it connects processes), `drives` the ways to reach a callback,
  // the default first. Give the version of the middleware that is really there.
  static void describe_static(rtmeter::Sink& sink) {
    sink.put("name", "template").put("version", "1");
    sink.put("middleware", "tiny").put("middleware_version", "1");
    for (const char* what : {"wakeup", "timer.one_shot", "timer.periodic", "cycle"})
      sink.put("measures", what);
    for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.timer", drive);
    for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.cycle", drive);
    sink.put("components", "one_thread");
    Options().describe(sink);
  }

  // The middleware's init. `run` says what will be measured; its strings stay valid until the
  // destructor, which is the middleware's shutdown. An option is read where it means something; one that the
  // user gave and nothing read is refused. What setup cannot do it throws: a rtmeter::SetupError says which
  // field has which value, what is wrong with it and what to do about it.
  explicit Template(const rtm_run& run)
      : depth_(run.history_depth), context_(depth_, Options().timers_first.of(run)) {}

  // What is in effect, quality of service above all. It goes into every result.
  void describe(rtmeter::Sink& sink) const override {
    sink.put("qos.history", "keep_last").put("qos.depth", std::to_string(depth_));
  }

  // A node, participant or component. Pointers that a create method returns are your own: you get them
  // back as `node`, `timer` or `publisher`. The toy has no nodes.
  void* create_node(const std::string& /*name*/) override { return this; }

  // The callback calls on_fire first thing, with the times that the middleware reports, or RTM_ABSENT.
  // The traits say what the middleware does with ticks that it missed.
  void* create_timer(void* /*node*/, const rtm_timer_spec& spec, rtm_timer_traits& traits) override {
    const auto callback = [spec](tiny::Clock::time_point due) {
      const rtm_fire fire{to_ns(due), RTM_ABSENT};
      spec.on_fire(spec.user, &fire);
    };
    timers_.push_back({nanoseconds(spec.period_ns), spec.mode == RTM_PERIODIC, callback, {}});
    context_.add(timers_.back());
    traits.ticks = RTM_EVERY_TICK;  // the n-th callback is for tick n, however late,
    traits.overrun = RTM_CATCH_UP;  // since missed ticks are called back for one after the other,
    traits.reports_monotonic = 1;   // and the reported time is CLOCK_MONOTONIC
    return &timers_.back();
  }

  // Starts the timer, or arms a one-shot again. now_ns is the core's stamp: count from it if you can.
  // On the measured path, from here on, what the middleware throws is a refused call: nothing needs catching.
  int arm(void* timer, std::int64_t /*now_ns*/) override {
    context_.start(*static_cast<tiny::Timer*>(timer));
    return 0;
  }

  void* create_publisher(void* /*node*/, const std::string& name) override { return &topic(name); }

  // The callback calls on_message first thing. The sequence number is a field beside the payload.
  void* create_subscriber(void* /*node*/, const std::string& name, rtm_on_message on_message,
                          void* user) override {
    topic(name).subscriber = [on_message, user](const tiny::Message& m) {
      const rtm_message message{m.sequence, m.data.data(), static_cast<std::uint32_t>(m.data.size())};
      on_message(user, &message);
    };
    return &topic(name);
  }

  // The data are the core's, and valid during the call only.
  int publish(void* publisher, const rtm_message& m) override {
    context_.publish(*static_cast<tiny::Topic*>(publisher), {m.sequence, {m.data, m.data + m.bytes}});
    return 0;
  }

  // Dispatches until interrupt(), or until the timeout has passed: the middleware's own spin.
  int spin(std::int64_t timeout_ns) override {
    const auto until = after(timeout_ns);
    while (context_.spin_once(until)) {
    }
    return 0;
  }
  // Returns after one callback at least.
  int wait(std::int64_t timeout_ns) override {
    context_.spin_once(after(timeout_ns));
    return 0;
  }
  // Dispatches what is ready; never blocks.
  int spin_some() override {
    int calls = 0;
    while (calls < rtmeter::kBurst && context_.spin_once(tiny::Clock::time_point::min())) ++calls;
    return 0;
  }
  // From any thread, and from within a callback.
  void interrupt() override { context_.interrupt(); }

 private:
  tiny::Topic& topic(const std::string& name) {
    const auto [place, is_new] = topics_.try_emplace(name);
    if (is_new) context_.add(place->second);
    return place->second;
  }

  const std::size_t depth_;
  tiny::Context context_;
  std::deque<tiny::Timer> timers_;             // addresses stay when it grows
  std::map<std::string, tiny::Topic> topics_;  // here too
};

}  // namespace

RTMETER_ADAPTER_MAIN(Template)
