// How a run comes to its end whatever the middleware does: the phases of a run, the supervisor that watches
// them, and what is said of a run that had to be given up.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "errors.hpp"
#include "measure/config.hpp"
#include "measure/session.hpp"
#include "probe/progress.hpp"
#include "probe/status.hpp"
#include "probe/supervisor.hpp"
#include "rtmeter/clock.hpp"

namespace rtmeter {

class Oversight {
 public:
  // Whoever moves on first, the measured thread or the supervisor that gives it up, ends the run.
  enum class Phase { setting_up, measuring, ending, given_up };

  // What it watches and what it needs; conclude ends log and status with the failure, on the supervisor's
  // thread, and returns the exit code.
  struct Run {
    const Config& config;
    Clock& clock;
    std::atomic<bool>& stop;
    StatusOut& out;
    Session& session;
    const Progress& progress;
    std::function<bool()> log_failed;
    std::function<std::uint64_t()> settled;  // rows of an interrupted run, as they are handed over
    std::function<void()> look;  // while it is measured, four times a second
    std::function<int(Failure)> conclude;
  };

  Oversight(Run run, std::string middleware) : run_(std::move(run)), middleware_(std::move(middleware)) {}

  // Measured thread.
  void start(const Watchdog& watchdog, int writer_tid);
  // Does not return if the run was given up meanwhile: the process is about to end.
  void move_on(Phase to) noexcept;
  // Before the middleware is stopped, once it is ending: returns when no interrupt of it is under way.
  void let_go() noexcept;
  // The exit code from here on, also if the middleware's own end hangs.
  int leave_with(int exit_code) noexcept { return exit_code_ = exit_code; }
  void end() { supervisor_.reset(); }

  // Why the supervisor ended a run that the measured thread has come back from.
  std::optional<Failure> objection() const;
  // How often writer and supervisor were put first for want of a CPU. Any thread.
  int rescues() const noexcept { return rescues_.load(); }
  std::vector<int> tids() const { return supervisor_ ? supervisor_->tids() : std::vector<int>{}; }

 private:
  void interrupt();
  void look();
  void note_silence();
  void give_up();
  Failure no_return(Phase phase) const;
  Failure silence() const;
  std::int64_t silence_ns() const { return Supervisor::kSilenceNs + run_.config.quiet_ns(); }

  Run run_;
  const std::string middleware_;
  std::atomic<Phase> phase_{Phase::setting_up};
  std::mutex interrupting_;
  std::atomic<int> exit_code_{1}, rescues_{0};
  std::atomic<bool> silent_{false};
  std::uint64_t seen_ = 0;     // supervisor's own: rows
  std::int64_t heard_ns_ = 0;  // supervisor's own: when they last grew
  std::optional<Supervisor> supervisor_;
};

}  // namespace rtmeter
