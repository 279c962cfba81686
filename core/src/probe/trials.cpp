#include "probe/trials.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace rtmeter {
namespace {

using std::chrono::milliseconds;
using Call = std::function<void(std::int64_t timeout_ns)>;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kHourNs = 3'600'000'000'000, kShortNs = 20'000'000;
constexpr auto kMoment = milliseconds(200), kLong = milliseconds(400), kPatience = milliseconds(5000);
constexpr int kMostReturns = 200;  // within kLong, of a call that is to wait for kShortNs: 20 are expected

// Interrupts the adapter from a thread of its own, after a delay, and once more if that does not do.
class Interrupter {
 public:
  Interrupter(Session& session, milliseconds delay)
      : session_(session), thread_([this, delay] { run(delay); }) {}
  ~Interrupter() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Interrupter(const Interrupter&) = delete;
  Interrupter& operator=(const Interrupter&) = delete;

  int times() const noexcept { return times_.load(); }

 private:
  void run(milliseconds delay) {
    std::unique_lock lock(mutex_);
    for (auto pause = delay; !changed_.wait_for(lock, pause, [this] { return done_; }); pause = kPatience) {
      ++times_;
      session_.interrupt();
    }
  }

  Session& session_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::atomic<int> times_{0};
  std::thread thread_;
};

class Trials {
 public:
  Trials(Bench& bench, StatusOut& out) : bench_(bench), session_(bench.session), out_(out) {}

  void blocking(const std::string& name, const Call& call) {
    trial(name + "_blocks", [&] { return until_interrupted(call); });
    trial(name + "_after_interrupt", [&] { return after_interrupt(call); });
  }
  // A wait ends by itself; a spin may leave that to interrupt().
  void timeouts(const std::string& name, const Call& call) {
    for (const auto& [what, timeout_ns] :
         {std::pair("_zero", std::int64_t{0}), std::pair("_negative", std::int64_t{-1})})
      trial(name + what, [&, timeout_ns = timeout_ns] { return ends(call, timeout_ns, 1); });
    trial(name + "_timeout", [&] { return ends(call, kShortNs, kMostReturns); });
  }
  void at_once(const std::string& name, const Call& call) {
    trial(name + "_returns", [&] { return ends(call, 0, 1); });
  }

 private:
  using Outcome = std::optional<std::string>;  // what is wrong

  void trial(const std::string& name, const std::function<Outcome()>& run) {
    if (bench_.stop.load()) return;
    out_.write(Json(Json::Object{{"event", "trial"}, {"name", name}, {"outcome", "begun"}}));
    const std::uint64_t refused = session_.refused_calls();
    Outcome wrong = run();
    if (!wrong && session_.refused_calls() != refused) wrong = "the call is refused: it returns non-zero";
    out_.write(Json(Json::Object{{"event", "trial"},
                                 {"name", name},
                                 {"outcome", wrong ? "failed" : "passed"},
                                 {"message", wrong.value_or("")}}));
  }

  // One that returns without a callback may do so now and then, but not all the time.
  Outcome until_interrupted(const Call& call) {
    int returns = 0;
    Interrupter interrupter(session_, kMoment);
    while (interrupter.times() == 0 && !bench_.stop.load()) {
      call(kHourNs);
      ++returns;
    }
    if (returns > kMostReturns)
      return "it does not block: it returned " + std::to_string(returns) + " times before interrupt() came";
    if (interrupter.times() > 1) return "it went on after the first interrupt() and ended at the second";
    return {};
  }

  Outcome after_interrupt(const Call& call) {
    session_.interrupt();
    Interrupter interrupter(session_, kPatience);
    call(kHourNs);
    if (interrupter.times() > 0) return "an interrupt() that came just before it was lost";
    return {};
  }

  // Once, or until it has been called for kLong.
  Outcome ends(const Call& call, std::int64_t timeout_ns, int most) {
    Interrupter interrupter(session_, kPatience);
    const auto end = Clock::now() + kLong;
    int returns = 0;
    do {
      call(timeout_ns);
      ++returns;
    } while (most > 1 && Clock::now() < end && !bench_.stop.load());
    if (interrupter.times() > 0)
      return "with a timeout of " + std::to_string(timeout_ns) + " ns it went on until it was interrupted";
    if (returns > most && most > 1)
      return "with a timeout of " + std::to_string(timeout_ns) + " ns it does not wait: it returned " +
             std::to_string(returns) + " times in 400 ms";
    return {};
  }

  Bench& bench_;
  Session& session_;
  StatusOut& out_;
};

}  // namespace

void try_calls(Bench& bench, StatusOut& out) {
  Trials trials(bench, out);
  Session& session = bench.session;
  const Call spin = [&](std::int64_t timeout_ns) { session.spin(timeout_ns); };
  const Call wait = [&](std::int64_t timeout_ns) { session.wait(timeout_ns); };
  const Call spin_some = [&](std::int64_t) { session.spin_some(); };
  const bool messages = bench.config.is_exchange();
  const bool timer_spins = bench.config.measurement == RTM_TIMER && bench.drive == RTM_SPIN;
  const bool one_shot = bench.config.mode == RTM_ONE_SHOT;
  const auto receives = [&](rtm_receive way) { return messages && bench.receive == way; };
  if (receives(RTM_RECEIVE_SPIN) || receives(RTM_RECEIVE_LISTENER) || (timer_spins && !one_shot))
    trials.blocking("spin", spin);
  if (receives(RTM_RECEIVE_SPIN_ONCE) || (timer_spins && one_shot)) {
    trials.blocking("wait", wait);
    trials.timeouts("wait", wait);
  }
  if (receives(RTM_RECEIVE_POLL) || (!messages && bench.drive != RTM_SPIN))
    trials.at_once("spin_some", spin_some);
}

}  // namespace rtmeter
