// null: pretends to be a middleware, on a scripted clock. It tests the instrument itself: no time
// passes, every outcome is exact. docs/null-adapter.md describes the script.
#include "null.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "options.hpp"
#include "rtmeter/adapter.hpp"
#include "script.hpp"
#include "scripted_clock.hpp"

namespace rtmeter::null {
namespace {

ScriptedClock& the_clock() {
  static ScriptedClock clock;
  return clock;
}

class Null final : public Adapter {
 public:
  explicit Null(const rtm_run& run)
      : run_(run), script_(run), reports_(kOptions.reports.of(run)), skip_(run.overrun_asked == RTM_SKIP),
        jumps_(kOptions.ticks.given(run) ? kOptions.ticks.of(run) == "jumps" : skip_) {
    if (run.measurement == RTM_CYCLE ? run.drive == RTM_SPIN
                                     : run.measurement == RTM_TIMER && run.timer_mode == RTM_PERIODIC) {
      relative_ = kOptions.relative.of(run);
      slow_ppm_ = kOptions.clock_rate_ppm.of(run, 0);
    }
    if (run.role == RTM_ROLE_SERVER)
      throw SetupError("server-adapter", "null", "its server runs inline in the client", "leave it out");
    if (run.measurement != RTM_TIMER && run.measurement != RTM_CHAIN && !discovers())
      clock_.set_delay([this](std::int64_t k) { return script_.row(k).wake_delay_ns; });
  }

  ~Null() override { leave(); }

  static void describe_static(Sink& sink) {
    sink.put("name", "null").put("version", "1").put("middleware", "none").put("middleware_version", "");
    for (const char* m : {"wakeup", "timer.one_shot", "timer.periodic", "roundtrip", "request", "cycle",
                          "chain", "discovery"})
      sink.put("measures", m);
    for (const char* end : {"publisher", "subscriber"}) sink.put("matches", end);
    for (const char* i : {"service", "action"}) sink.put("interfaces", i);
    for (const char* d : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.timer", d);
    for (const char* d : {"spin", "sleep_then_spin_some"}) sink.put("drives.cycle", d);
    sink.put("components", "one_thread");
    for (const char* r : {"spin", "spin_once", "poll"}) sink.put("receives.roundtrip", r);
    for (const char* r : {"spin", "spin_once", "poll", "call"}) sink.put("receives.request", r);
    for (const char* m : {"chain", "discovery"}) sink.put(std::string("receives.") + m, "spin_once");
    sink.put("server", "inline")
        .put("beside", "subscribers")
        .put("beside", "publishers")
        .put("beside", "background_nodes");
    sink.put("clock", "scripted");
    kOptions.describe(sink);
  }

  // Asked once everybody hears whom they hear; of a participant before it has joined, too.
  void describe(Sink& /*sink*/) const override {
    if (script_.has_edges() && !(discovers() && number_ == 0)) script_.refuse_others(edges_there());
  }

  void* create_timer(void* /*node*/, const rtm_timer_spec& spec, rtm_timer_traits& traits) override {
    spec_ = spec;
    traits = {jumps_ ? RTM_JUMPS : RTM_EVERY_TICK, skip_ ? RTM_SKIP : RTM_CATCH_UP, reports_ ? 1 : 0};
    return this;
  }

  int arm(void* /*timer*/, std::int64_t now_ns) override {
    if (spec_.mode == RTM_PERIODIC) {
      schedule_tick(0);
      return 0;
    }
    const std::int64_t delay_ns = script_.row(tick_++).fire_delay_ns;
    timer_.reset();
    if (delay_ns != kNever) timer_ = Shot{now_ns + spec_.period_ns, now_ns + spec_.period_ns + delay_ns};
    return 0;
  }

  // Only in a chain it matters who hears.
  void* create_node(const std::string& name) override {
    background_nodes_ += name.rfind("background", 0) == 0 ? 1 : 0;
    further_publishers_ += name.rfind("publisher", 0) == 0 ? 1 : 0;
    return &nodes_.emplace_back(name);
  }

  void* create_publisher(void* /*node*/, const std::string& topic) override {
    if (run_.measurement == RTM_CHAIN) return &publishers_.emplace_back(Publisher{topic, nullptr});
    return &publishers_.emplace_back(topic == "ping"      ? Publisher{"pong", &Script::Row::reply_delay_ns}
                                     : topic == "request" ? Publisher{topic, &Script::Row::request_delay_ns}
                                                          : Publisher{topic, &Script::Row::respond_delay_ns});
  }
  void* create_subscriber(void* node, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    if (run_.measurement == RTM_CHAIN) {
      const std::size_t edge = hear(topic, node);
      hearers_[topic].push_back({{on_message, user}, edge});
      return &hearers_[topic];
    }
    if (run_.measurement == RTM_ROUNDTRIP && topic == "ping") {  // the server is inline: one beside it
      const std::size_t edge = hear(topic, node);
      return &hearers_[topic].emplace_back(Hearer{{on_message, user}, edge});
    }
    if (discovers()) join(*static_cast<std::string*>(node));
    subscribers_[topic] = {on_message, user};
    return this;
  }

  int publish(void* publisher, const rtm_message& message) override {
    const auto& p = *static_cast<Publisher*>(publisher);
    if (run_.measurement == RTM_CHAIN) {
      for (const Hearer& hearer : hearers_[p.topic]) {
        const std::int64_t delay_ns =
            script_.under_way(static_cast<std::int64_t>(message.sequence), hearer.edge);
        if (delay_ns != kNever) deliver(hearer.subscriber, message, clock_.now_ns() + delay_ns, Fate::ok);
      }
      return 0;
    }
    if (discovers()) return tell_everybody(message);
    if (message.sequence == RTM_SEQUENCE_HELLO) {
      deliver(p, message, clock_.now_ns(), Fate::ok);
      return 0;
    }
    const Script::Row& row = script_.row(static_cast<std::int64_t>(message.sequence));
    const std::int64_t delay_ns = row.*(p.delay);
    if (p.topic == "pong") return echo(p, message, row);
    if (delay_ns != kNever) deliver(p, message, clock_.now_ns() + delay_ns, Fate::ok);
    return 0;
  }

  void watch(void* /*node*/, rtm_on_match on_match, void* user) override { watcher_ = {on_match, user}; }

  void* create_client(void* /*node*/, const std::string& /*service*/, rtm_on_reply on_reply,
                      void* user) override {
    client_ = {on_reply, user};
    return &client_;
  }
  void* create_server(void* /*node*/, const std::string& /*service*/, rtm_on_message /*on_request*/,
                      void* /*user*/) override {
    return this;  // it is inline
  }
  int reply(void* /*server*/, rtm_reply /*what*/, const rtm_message& /*message*/) override { return 0; }
  // A call that blocks lets time pass until its result has come.
  int call(void* /*client*/, const rtm_message& request) override {
    const std::int64_t now_ns = clock_.now_ns();
    const bool is_greeting = request.sequence == RTM_SEQUENCE_HELLO;
    const Script::Row row =
        is_greeting ? Script::Row() : script_.row(static_cast<std::int64_t>(request.sequence));
    if (run_.interface == RTM_ACTION && !is_greeting) {
      come_back(RTM_ACCEPTED, {request.sequence, nullptr, 0}, row.accept_delay_ns, Fate::ok);
      come_back(RTM_FEEDBACK, {request.sequence, nullptr, 0}, row.feedback_delay_ns, Fate::ok);
    }
    come_back(RTM_RESULT, request, row.reply_delay_ns, row.fate);
    if (run_.receive != RTM_RECEIVE_CALL) return 0;
    if (row.reply_delay_ns == kNever) return -1;
    clock_.run_until(now_ns + row.reply_delay_ns);
    return 0;
  }

  int spin(std::int64_t timeout_ns) override {
    const std::int64_t until_ns = after(timeout_ns);
    interrupted_ = false;
    while (!interrupted_ && clock_.now_ns() < until_ns) dispatch(until_ns);
    return 0;
  }
  int wait(std::int64_t timeout_ns) override {
    dispatch(after(timeout_ns));
    return 0;
  }
  // Polling: time goes on to the timer, or by a period. After a sleep: the timer whose time the sleep
  // was for fires, when the script says.
  int spin_some() override {
    const std::int64_t now_ns = clock_.now_ns();
    if (run_.drive == RTM_POLL)
      dispatch(timer_ ? timer_->due_ns : now_ns + run_.period_ns);
    else if (timer_ && timer_->expected_ns <= now_ns)
      fire();
    return 0;
  }
  void interrupt() override { interrupted_ = true; }

 private:
  struct Shot {
    std::int64_t expected_ns, due_ns;
  };
  struct Publisher {
    std::string topic;  // whom it reaches
    std::int64_t Script::Row::* delay;
  };
  struct Subscriber {
    rtm_on_message on_message = nullptr;
    void* user = nullptr;
  };
  struct Watcher {
    rtm_on_match on_match = nullptr;
    void* user = nullptr;
  };
  struct Client {
    rtm_on_reply on_reply = nullptr;
    void* user = nullptr;
  };
  struct Hearer {
    Subscriber subscriber;
    std::size_t edge;  // of the script
  };

  // A participant of a discovery is one of these adapters; they know each other by number.
  static std::map<std::uint64_t, Null*>& present() {
    static std::map<std::uint64_t, Null*> all;
    return all;
  }
  bool discovers() const noexcept { return run_.measurement == RTM_DISCOVERY; }
  // The number in the script of an edge that is there from now on.
  std::size_t hear(const std::string& topic, void* node) {
    return script_.edge(edges_.emplace_back(topic + ">" + *static_cast<std::string*>(node)));
  }
  // Of a discovery once all have joined.
  std::vector<std::string> edges_there() const {
    std::vector<std::string> there = edges_;
    for (const auto& [number, from] : present())
      for (const auto& [other, to] : present())
        if (number != other) there.push_back(from->name_ + ">" + to->name_);
    return there;
  }
  // The release under way: before the first one, that.
  const Script::Row& row_now() const noexcept {
    const std::int64_t since_ns = clock_.now_ns() - ScriptedClock::kFirstReleaseNs;
    return script_.row(std::max<std::int64_t>(since_ns, 0) / run_.period_ns);
  }

  // Both ends are there: matches come when the script says.
  void join(const std::string& name) {
    static std::uint64_t count = 0;
    name_ = name;
    number_ = ++count;
    for (const auto& [number, other] : present()) {
      match_later(*this, *other);
      match_later(*other, *this);
    }
    present()[number_] = this;
  }
  void match_later(const Null& from, const Null& to) {
    const std::size_t edge = script_.edge(from.name_ + ">" + to.name_);
    const Script::Row& row = row_now();
    const std::int64_t delay_ns = edge == Script::kNone ? row.match_delay_ns : row.edges[edge];
    if (delay_ns == kNever) return;
    clock_.schedule(clock_.now_ns() + delay_ns, [publisher = from.number_, subscriber = to.number_] {
      const auto a = present().find(publisher), b = present().find(subscriber);
      if (a == present().end() || b == present().end()) return;
      a->second->matched(RTM_PUBLISHER, subscriber, true);
      b->second->matched(RTM_SUBSCRIBER, publisher, true);
    });
  }
  void matched(rtm_end end, std::uint64_t other, bool is_there) {
    const bool changed = is_there ? matches_[end].insert(other).second : matches_[end].erase(other) > 0;
    if (changed) watcher_.on_match(watcher_.user, end, static_cast<std::int32_t>(matches_[end].size()));
  }
  void leave() {
    if (number_ == 0) return;
    present().erase(number_);
    for (const auto& [number, other] : present())
      for (const rtm_end end : {RTM_PUBLISHER, RTM_SUBSCRIBER}) other->matched(end, number_, false);
  }
  int tell_everybody(const rtm_message& message) {
    const Script::Row& row = row_now();
    if (row.message_delay_ns == kNever) return 0;
    for (const std::uint64_t number : matches_[RTM_PUBLISHER])
      carry(message, clock_.now_ns() + row.message_delay_ns, row.fate, [number](const rtm_message& copy) {
        const auto to = present().find(number);
        if (to == present().end()) return;
        for (const auto& [topic, subscriber] : to->second->subscribers_)
          subscriber.on_message(subscriber.user, &copy);
      });
    return 0;
  }

  // A ping: background nodes and further publishers delay it; each further subscriber hears it, and delays
  // what comes after it; the reply comes last.
  int echo(const Publisher& p, const rtm_message& ping, const Script::Row& row) {
    std::int64_t before_ns =
        background_nodes_ * row.background_delay_ns + further_publishers_ * row.publisher_delay_ns;
    for (const Hearer& hearer : hearers_["ping"]) {
      before_ns += row.subscriber_delay_ns;
      const std::int64_t delay_ns = hearer.edge == Script::kNone ? 0 : row.edges[hearer.edge];
      if (delay_ns != kNever)
        deliver(hearer.subscriber, ping, clock_.now_ns() + before_ns + delay_ns, Fate::ok);
    }
    if (row.reply_delay_ns != kNever)
      deliver(p, ping, clock_.now_ns() + before_ns + row.reply_delay_ns, row.fate);
    return 0;
  }

  std::int64_t after(std::int64_t timeout_ns) const noexcept {
    const std::int64_t now_ns = clock_.now_ns();
    return timeout_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + timeout_ns;
  }

  // Runs what comes next, timer or messages, if it comes until then; else goes to until_ns.
  void dispatch(std::int64_t until_ns) noexcept {
    if (timer_ && timer_->due_ns <= until_ns && timer_->due_ns <= clock_.next_ns())
      fire();
    else
      clock_.run_next(until_ns);
  }

  void fire() noexcept {
    clock_.run_until(std::max(timer_->due_ns, clock_.now_ns()));
    const rtm_fire fire =
        reports_ ? rtm_fire{timer_->expected_ns, clock_.now_ns()} : rtm_fire{RTM_ABSENT, RTM_ABSENT};
    timer_.reset();
    if (relative_) origin_ns_ = clock_.now_ns() - since_origin_ns(tick_);
    if (spec_.mode == RTM_PERIODIC) schedule_tick(tick_ + 1);
    spec_.on_fire(spec_.user, &fire);
  }

  // How long the timer's clock takes for so many periods.
  std::int64_t since_origin_ns(std::int64_t ticks) const noexcept {
    constexpr std::int64_t kMillion = 1000000;
    const std::int64_t nominal_ns = ticks * spec_.period_ns;  // times ppm it would not fit
    return nominal_ns + nominal_ns / kMillion * slow_ppm_ + nominal_ns % kMillion * slow_ppm_ / kMillion;
  }

  // The next tick from k on that fires; with skip, those whose time has passed are passed over.
  void schedule_tick(std::int64_t k) noexcept {
    if (script_.never_fires()) return;
    const auto expected_ns = [&](std::int64_t j) { return origin_ns_ + since_origin_ns(j); };
    while (script_.row(k).fire_delay_ns == kNever || (skip_ && expected_ns(k) < clock_.now_ns())) ++k;
    tick_ = k;
    timer_ = Shot{expected_ns(k), expected_ns(k) + script_.row(k).fire_delay_ns};
  }

  void deliver(const Publisher& p, const rtm_message& message, std::int64_t at_ns, Fate fate) {
    deliver(subscribers_[p.topic], message, at_ns, fate);
  }
  void deliver(const Subscriber& subscriber, const rtm_message& message, std::int64_t at_ns, Fate fate) {
    if (subscriber.on_message == nullptr) return;
    carry(message, at_ns, fate,
          [subscriber](const rtm_message& copy) { subscriber.on_message(subscriber.user, &copy); });
  }
  void come_back(rtm_reply what, const rtm_message& message, std::int64_t delay_ns, Fate fate) {
    if (delay_ns == kNever) return;
    carry(message, clock_.now_ns() + delay_ns, fate,
          [this, what](const rtm_message& copy) { client_.on_reply(client_.user, what, &copy); });
  }
  template <typename Arrive>
  void carry(const rtm_message& message, std::int64_t at_ns, Fate fate, Arrive&& arrive) {
    std::vector<std::uint8_t> bytes(message.data, message.data + message.bytes);
    if (fate == Fate::corrupt) bytes.back() ^= 0xFF;
    clock_.schedule(at_ns, [=, sequence = message.sequence, bytes = std::move(bytes)] {
      const rtm_message copy{sequence, bytes.data(), static_cast<std::uint32_t>(bytes.size())};
      for (int copies = fate == Fate::duplicate ? 2 : 1; copies > 0; --copies) arrive(copy);
    });
  }

  ScriptedClock& clock_ = the_clock();
  const rtm_run& run_;
  Script script_;
  std::vector<std::string> edges_;  // that are there, but for those of a discovery
  const bool reports_, skip_, jumps_;
  bool relative_ = false;      // a periodic timer waits from its last tick on
  std::int64_t slow_ppm_ = 0;  // its clock's rate
  std::atomic<bool> interrupted_{false};  // also by the supervisor
  rtm_timer_spec spec_{};
  std::optional<Shot> timer_;
  std::int64_t origin_ns_ = ScriptedClock::kFirstReleaseNs;  // when tick 0 is, or would have been, due
  std::int64_t tick_ = 0;  // periodic: the tick scheduled; one-shot: shots armed
  std::deque<Publisher> publishers_;
  std::map<std::string, Subscriber> subscribers_;
  std::string name_;              // of a discovery, from here on
  std::uint64_t number_ = 0;      // 0: not there yet
  std::set<std::uint64_t> matches_[2];  // by end: with whose
  Watcher watcher_;
  Client client_;
  std::deque<std::string> nodes_;
  std::int64_t background_nodes_ = 0, further_publishers_ = 0;
  std::map<std::string, std::vector<Hearer>> hearers_;  // of a chain and a ping, by topic
};

}  // namespace

const rtm_adapter& adapter() { return *adapter_table<Null>(); }
Clock& clock() { return the_clock(); }

}  // namespace rtmeter::null
