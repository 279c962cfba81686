#include "probe/oversight.hpp"

#include <unistd.h>

#include <iostream>

#include "system/guard.hpp"
#include "system/sends.hpp"

namespace rtmeter {
namespace {

std::string seconds(std::int64_t ns) { return std::to_string(ns / 1'000'000'000) + " s"; }

}  // namespace

void Oversight::start(const Watchdog& watchdog, int writer_tid) {
  supervisor_.emplace(
      Supervisor::Duties{run_.stop, watchdog, run_.config.watch_stdin, writer_tid, rescues_, run_.settled,
                         [this] { interrupt(); }, [this] { look(); }, [this] { give_up(); }},
      run_.config.cpus);
}

void Oversight::move_on(Phase to) noexcept {
  Phase from = phase_.load();
  while (from != Phase::given_up && !phase_.compare_exchange_weak(from, to)) {
  }
  while (from == Phase::given_up) pause();
  if (to == Phase::ending && supervisor_) supervisor_->expect_end();
}

void Oversight::let_go() noexcept { const std::lock_guard under_way(interrupting_); }

std::optional<Failure> Oversight::objection() const {
  return silent_.load() ? std::optional(silence()) : std::nullopt;
}

// Supervisor's thread, from here on.
void Oversight::interrupt() {
  const std::lock_guard under_way(interrupting_);
  // A discovery stops its session and starts it anew, and never waits for long.
  if (phase_.load() == Phase::measuring && run_.config.measurement != RTM_DISCOVERY) run_.session.interrupt();
}

void Oversight::look() {
  if (run_.log_failed() || run_.session.broken()) run_.stop.store(true);  // nothing more can be kept, or come
  if (phase_.load() != Phase::measuring) return;
  look_at_sockets();
  run_.look();
  note_silence();
  run_.out.write_if_read(run_.progress.to_json());
}

// A server records only what it is asked, and scripted time does not pass. Who begins with others waits for
// them.
void Oversight::note_silence() {
  if (run_.clock.scripted() || run_.config.only_serves()) return;
  const std::int64_t now_ns = run_.clock.now_ns();
  const bool waits = run_.config.only_waits() && told_to_go().load(std::memory_order_acquire) == 0;
  if (const std::uint64_t seen = run_.progress.seen(); seen != seen_ || heard_ns_ == 0 || waits) {
    seen_ = seen;
    heard_ns_ = now_ns;
  }
  if (now_ns - heard_ns_ <= silence_ns() || silent_.exchange(true)) return;
  run_.stop.store(true);
}

// What was recorded is kept, if that is not what hangs: the alarm ends the process then.
void Oversight::give_up() {
  const Phase phase = phase_.exchange(Phase::given_up);
  alarm(Supervisor::kPatienceNs / 1'000'000'000);
  if (phase != Phase::ending) _exit(run_.conclude(silent_.load() ? silence() : no_return(phase)));
  std::cerr << "rtmeter: " << middleware_
            << " does not end; the probe ends without it (or nobody reads what it says)" << std::endl;
  _exit(exit_code_.load());
}

Failure Oversight::no_return(Phase phase) const {
  const std::string since = " for " + seconds(Supervisor::kPatienceNs) + " since the run was to end";
  return {"middleware", middleware_,
          phase == Phase::setting_up
              ? "the run has not got ready" + since + ": its start hangs, or gets no CPU"
              : "the measured thread has not come back from a call of it" + since,
          "see whether the other end, or a daemon of the middleware's, hangs; end that too"};
}

Failure Oversight::silence() const {
  return {"middleware", middleware_, "no release was settled for " + seconds(silence_ns()),
          "the measured thread hangs in a call of the middleware, or gets no CPU: see the middleware's own "
          "messages, and what runs at real-time priority on that CPU"};
}

}  // namespace rtmeter
