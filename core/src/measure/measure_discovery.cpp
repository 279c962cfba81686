// discovery: how long until participants that have just started have found each other, and until a first
// message has come over every pair? At each release all start anew, or the last joins those that are there.
#include <algorithm>
#include <deque>
#include <vector>

#include "errors.hpp"
#include "measure/measurement.hpp"
#include "measure/payload.hpp"
#include "system/guard.hpp"

namespace rtmeter {
namespace {

constexpr std::int64_t kLook = 50'000'000;  // a wait ends by then: nobody interrupts it
constexpr const char* kTopic = "everybody";
// A message's sequence number: the release's index, and below it who sends.
constexpr int kNumberBits = 16;
constexpr std::int64_t kBeforehand = (std::int64_t{1} << 40) - 1;  // in place of a release's index

class Participant {
 public:
  Participant(Bench& bench, Session& session, int number, Stampers& stampers)
      : b_(bench), session_(session), number_(number), all_(bench.config.discovery->participants),
        stays_(!bench.config.discovery->cold && number != all_ - 1), payload_(bench.config.payload_bytes),
        stampers_(stampers), heard_(static_cast<std::size_t>(all_)) {}

  bool stays() const noexcept { return stays_; }
  std::string name() const { return "p" + std::to_string(number_); }
  void* node() const noexcept { return node_; }
  int matches() const noexcept {
    int least = all_;
    for (const rtm_end end : told_) least = std::min(least, matches_[end].load());
    return least;
  }
  // Where the middleware tells of no matches: whether it has heard all others.
  bool is_told() const noexcept { return !told_.empty(); }
  bool has_found_all() const noexcept { return found() >= all_ - 1; }
  int found() const noexcept { return is_told() ? matches() : all_ - 1 - static_cast<int>(lacks_); }

  // The middleware's init, and the ends; throws Failure.
  void start() {
    for (auto& count : matches_) count.store(0);
    if (!session_.started()) session_.start();  // the probe has started its own for the first time
    if (!asked_what_is_told_) read_what_is_told();
    node_ = session_.create_node(name());
    if (is_told()) session_.watch(node_, &Participant::on_match, this);
    publisher_ = session_.create_publisher(node_, kTopic);
    session_.create_subscriber(node_, kTopic, &Participant::on_message, this);
  }
  void stop() noexcept { session_.stop(); }

  // Of release k nothing is known yet.
  void await_round(std::int64_t k) noexcept {
    std::fill(heard_.begin(), heard_.end(), false);
    lacks_ = stays_ && k != kBeforehand ? 1 : all_ - 1;  // who stays has heard the others before
    first_ns_ = kAbsent;
    round_ = k;
    for (auto& stamp : matched_ns_) stamp.store(kAbsent);
    next_ns_ = INT64_MIN;
  }

  // Greets everybody once its publisher is matched with all, or from the start where nobody tells, again and
  // again: who was not yet ready does not hear it. Returns when it wants to be called again.
  std::int64_t greet(std::int64_t now_ns) noexcept {
    if (is_told() && matched_ns_[told_.front()].load() == kAbsent) return INT64_MAX;
    if (now_ns >= next_ns_) {
      const auto sequence =
          static_cast<std::uint64_t>(round_) << kNumberBits | static_cast<unsigned>(number_);
      const rtm_message message = payload_.message(sequence);
      if (round_ == kBeforehand)
        session_.offer(publisher_, message);
      else
        session_.publish(publisher_, message);
      next_ns_ = now_ns + kApartNs * all_;
    }
    return next_ns_;
  }

  // When all its ends were matched with those of all others; kAbsent: not until then.
  std::int64_t matched_ns(std::int64_t until_ns) const noexcept {
    std::int64_t last_ns = INT64_MIN;
    for (const rtm_end end : told_) {
      const std::int64_t at_ns = matched_ns_[end].load();
      if (at_ns == kAbsent || at_ns > until_ns) return kAbsent;
      last_ns = std::max(last_ns, at_ns);
    }
    return last_ns;
  }
  // When the last of those whom it did not know had been heard.
  std::int64_t first_ns(std::int64_t until_ns) const noexcept {
    return first_ns_ > until_ns ? kAbsent : first_ns_;
  }
  bool saw_too_many() const noexcept { return too_many_.load(); }

 private:
  static constexpr std::int64_t kApartNs = 2'000'000;  // all together: five hundred greetings a second

  void read_what_is_told() {
    const Json known = session_.describe();
    const Json* list = known.find("matches");
    for (const auto& [end, name] : {std::pair(RTM_PUBLISHER, "publisher"), {RTM_SUBSCRIBER, "subscriber"}})
      for (const Json& one : list == nullptr ? Json::Array() : list->as_array())
        if (one.as_string() == name) told_.push_back(end);
    asked_what_is_told_ = true;
  }

  // Any thread of the middleware's; one at a time for an end.
  static void on_match(void* user, rtm_end end, std::int32_t others) {
    auto& self = *static_cast<Participant*>(user);
    const std::int64_t now_ns = self.b_.clock.now_ns();
    const std::int32_t before = self.matches_[end].exchange(others);
    if (others > self.all_ - 1) self.too_many_.store(true);
    if (others <= before || others < self.all_ - 1) return;
    std::int64_t none = kAbsent;
    self.matched_ns_[end].compare_exchange_strong(none, now_ns);
  }

  static void on_message(void* user, const rtm_message* message) {
    auto& self = *static_cast<Participant*>(user);
    const std::int64_t now_ns = self.b_.clock.now_ns();
    self.stampers_.note();
    if (!self.payload_.intact(*message)) {
      self.b_.counters.corrupted.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    self.hear(static_cast<int>(message->sequence & ((1U << kNumberBits) - 1)),
              static_cast<std::int64_t>(message->sequence >> kNumberBits), now_ns);
  }

  void hear(int from, std::int64_t round, std::int64_t now_ns) noexcept {
    if (round != round_ || from == number_ || from >= all_) return;
    if (heard_[static_cast<std::size_t>(from)] || is_known(from)) return;
    heard_[static_cast<std::size_t>(from)] = true;
    if (--lacks_ == 0) first_ns_ = now_ns;
  }

  bool is_known(int from) const noexcept { return stays_ && round_ != kBeforehand && from != all_ - 1; }

  Bench& b_;
  Session& session_;
  const int number_, all_;
  const bool stays_;
  Payload payload_;
  Stampers& stampers_;
  bool asked_what_is_told_ = false;
  std::vector<rtm_end> told_;  // of whose matches the middleware tells
  void* node_ = nullptr;
  void* publisher_ = nullptr;
  std::atomic<std::int32_t> matches_[2]{{0}, {0}};                   // by end
  std::atomic<std::int64_t> matched_ns_[2]{{kAbsent}, {kAbsent}};  // when there were enough
  std::atomic<bool> too_many_{false};
  std::vector<bool> heard_;
  std::int64_t round_ = -1, lacks_ = 0, first_ns_ = kAbsent, next_ns_ = 0;
};

class Discovery final : public Measurement {
 public:
  explicit Discovery(Bench& bench) : Measurement(bench), asked_(*bench.config.discovery) {
    const int first = asked_.participant.value_or(0),
              last = asked_.participant.value_or(asked_.participants - 1);
    for (int number = first; number <= last; ++number) {
      Session& session = number == last ? bench.session
                                        : others_.emplace_back(bench.session.adapter(), bench.config,
                                                               bench.drive, bench.receive);
      participants_.emplace_back(bench, session, number, stampers_);
    }
  }

  // Once beforehand, all together: what cannot work is an error, and the code has run.
  void set_up() override {
    for (Participant& one : participants_) {
      one.await_round(kBeforehand);
      one.start();
    }
    node_ = participants_.back().node();
    if (b_.clock.scripted()) return;
    const std::int64_t give_up_ns = b_.clock.now_ns() + b_.config.connect_timeout_ns;
    for (const Participant& one : participants_)
      while (!one.has_found_all() && !stopped()) {
        if (b_.clock.now_ns() >= give_up_ns) throw lonely(one);
        wait_beforehand();
      }
  }

  void end() noexcept override {
    for (Session& session : others_) session.stop();
  }

  void run() noexcept override {
    std::int64_t k = 0;
    if (await_go())
      for (const std::int64_t total = b_.config.total(); k < total && !stopped() && !failure_; ++k)
        if (!round(k)) break;
    leave();
    settle_interrupted(k);
  }

  Json facts() const override {
    return Json(Json::Object{{"overrun", name_of(RTM_CATCH_UP)}, {"grid", grid_json(grid_, "core")}});
  }
  std::optional<Failure> failure() const override { return failure_; }

  Json::Array warnings() const override {
    if (std::none_of(participants_.begin(), participants_.end(),
                     [](const Participant& one) { return one.saw_too_many(); }))
      return {};
    return {Json(Json::Object{{"type", "too_many_matches"},
                              {"message", "more ends were matched than the participants have"},
                              {"hint", "some of the release before had not left yet: lengthen the period"}})};
  }

 private:
  // Where the middleware tells of no matches they hear each other beforehand.
  void wait_beforehand() noexcept {
    std::int64_t left_ns = kLook;
    const std::int64_t now_ns = b_.clock.now_ns();
    for (Participant& one : participants_)
      if (!one.is_told()) left_ns = std::min(left_ns, one.greet(now_ns) - now_ns);
    b_.session.wait(left_ns);
  }

  Failure lonely(const Participant& one) const {
    const Json known = b_.session.describe();
    const Json* found = known.find("discovery");
    return {"participant", one.name(),
            (one.is_told() ? "matched with " : "has heard ") + std::to_string(one.found()) + " of " +
                std::to_string(asked_.participants - 1) + " others within " +
                std::to_string(b_.config.connect_timeout_ns / 1'000'000) + " ms" +
                (found == nullptr ? "" : ": " + found->as_string()),
            "see the middleware's messages; give it more time (connect_timeout), or fewer participants"};
  }

  // Whoever started all processes says when they begin; false if the run is to end instead. Who does not stay
  // leaves then, a period before the first release.
  bool await_go() noexcept {
    if (b_.clock.scripted()) {
      grid_ = {b_.clock.first_release_ns(b_.config.period_ns), b_.config.period_ns};
    } else {
      std::int64_t told_ns = 0;
      while ((told_ns = told_to_go().load(std::memory_order_acquire)) == 0) {
        if (stopped()) return false;
        wait_beforehand();
      }
      grid_ = {told_ns + b_.config.period_ns, b_.config.period_ns};
    }
    return all_leave(), true;
  }

  void all_leave() noexcept {
    for (Participant& one : participants_)
      if (!one.stays()) one.stop();
  }

  // One release; false if the run ended in its midst.
  bool round(std::int64_t k) noexcept {
    const std::int64_t release_ns = grid_.release_ns(k), until_ns = release_ns + b_.config.loss_timeout_ns;
    for (Participant& one : participants_) one.await_round(k);
    enter(k);
    hear_until(release_ns);
    if (stopped()) return false;
    std::int64_t started_ns = release_ns;  // of those who stay: nothing begins later
    try {
      for (Participant& one : participants_) {
        if (one.stays()) continue;
        started_ns = b_.clock.now_ns();
        if (started_ns < until_ns) one.start();  // else it has not been free in time
      }
    } catch (const std::exception& error) {
      failure_ = as_failure(error);
      return false;
    }
    for (std::int64_t now_ns = started_ns; now_ns < until_ns && !stopped(); now_ns = b_.clock.now_ns()) {
      std::int64_t next_ns = std::min(until_ns, now_ns + kLook);
      for (Participant& one : participants_) next_ns = std::min(next_ns, one.greet(now_ns));
      b_.session.wait(next_ns - now_ns);
    }
    if (stopped()) return false;
    all_leave();
    record(k, started_ns, until_ns);
    return true;
  }

  // Those who stay hear meanwhile who leaves.
  void hear_until(std::int64_t until_ns) noexcept {
    if (b_.clock.scripted() || !participants_.back().stays()) {
      b_.clock.reach_ns(until_ns);
      return;
    }
    for (std::int64_t now_ns = b_.clock.now_ns(); now_ns < until_ns && !stopped(); now_ns = b_.clock.now_ns())
      b_.session.wait(std::min(until_ns - now_ns, kLook));
  }

  void record(std::int64_t k, std::int64_t started_ns, std::int64_t until_ns) noexcept {
    std::int64_t matched_ns = INT64_MIN, first_ns = INT64_MIN;
    bool all_matched = true, all_heard = true;
    const bool told = participants_.front().is_told();
    for (const Participant& one : participants_) {
      const std::int64_t match_ns = one.matched_ns(until_ns), heard_ns = one.first_ns(until_ns);
      all_matched = all_matched && match_ns != kAbsent;
      all_heard = all_heard && heard_ns != kAbsent;
      matched_ns = std::max(matched_ns, match_ns);
      first_ns = std::max(first_ns, heard_ns);
    }
    const std::int64_t row[] = {grid_.release_ns(k), started_ns, all_matched ? matched_ns : kAbsent,
                                all_heard ? first_ns : kAbsent,
                                status((all_matched || !told) && all_heard ? kServed : kLost, k)};
    b_.recorder.record(row);
  }

  // The release under way, and those that were due.
  void settle_interrupted(std::int64_t k) noexcept {
    const std::int64_t now_ns = b_.clock.now_ns();
    for (; k < b_.config.total() && grid_.t0_ns > 0 && grid_.release_ns(k) <= now_ns; ++k) {
      const std::int64_t row[] = {grid_.release_ns(k), kAbsent, kAbsent, kAbsent, status(kInFlight, k)};
      b_.recorder.record(row);
    }
  }

  const DiscoveryConfig asked_;
  std::deque<Session> others_;  // on a scripted clock, where all participants are in this process
  std::deque<Participant> participants_;
  std::optional<Failure> failure_;
  Grid grid_;
};

}  // namespace

std::unique_ptr<Measurement> make_discovery(Bench& bench) { return std::make_unique<Discovery>(bench); }

}  // namespace rtmeter
