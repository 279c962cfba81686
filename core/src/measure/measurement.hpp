// What the measurements have in common. Each is written once, against the adapter contract and
// a clock. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "errors.hpp"
#include "json/json.hpp"
#include "log/recorder.hpp"
#include "measure/config.hpp"
#include "measure/grid.hpp"
#include "measure/session.hpp"
#include "measure/stampers.hpp"
#include "rtmeter/clock.hpp"
#include "system/audit.hpp"
#include "system/usage.hpp"

namespace rtmeter {

// Round-trip events that are counted apart, over measured releases.
struct Counters {
  std::atomic<std::uint64_t> late_after_lost{0}, duplicate{0}, out_of_order{0}, corrupted{0};
  std::atomic<std::uint64_t> extra_callbacks{0};  // timer callbacks for a release already served
};

// With those that others count: rows that the ring had no room for, calls that the middleware refused.
Json to_json(const Counters& counters, std::uint64_t overflow, std::uint64_t refused_calls);

// Tells the supervisor when to interrupt a spin that hears nothing more; INT64_MAX: never.
using Watchdog = std::atomic<std::int64_t>;

// Everything a measurement works with.
struct Bench {
  const Config& config;
  rtm_drive drive;
  rtm_receive receive;
  Clock& clock;
  Session& session;
  Recorder& recorder;
  UsageWindow& usage;
  Counters& counters;
  const std::atomic<bool>& stop;
  Watchdog& watchdog;
};

class Measurement {
 public:
  explicit Measurement(Bench& bench) : b_(bench) {}
  virtual ~Measurement() = default;
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  // Creates what it needs in the middleware and finds its peer; throws Failure.
  virtual void set_up() = 0;
  // Starts threads of its own, once the real-time settings are in effect (they inherit them).
  virtual void begin() {}
  // Ends the threads that begin() started.
  virtual void end() noexcept {}
  // Measures until every release is settled or stop is set. Measured path.
  virtual void run() noexcept = 0;
  // What was in effect, known after run(): grid, overrun, ticks.
  virtual Json facts() const = 0;
  // Whose grid the releases are on, once set up: core, reported (by the middleware) or inferred (from its
  // callbacks, whose constant delay is then in the grid); null where there is none.
  virtual const char* grid_from() const { return "core"; }
  // The threads that a cycle's components were seen on, after run(): one_thread, two_threads, or
  // middleware_threads where they come on others of the middleware's; null elsewhere.
  virtual const char* components() const { return nullptr; }
  // Threads of the measurement besides the caller of run(), once set up.
  virtual std::vector<int> measured_tids() const { return {}; }
  // Threads that stamped messages so far: those, the caller of run(), or the middleware's.
  std::vector<int> stamping_tids() const { return stampers_.tids(); }
  // The same as they were when they stamped first, if that was seen: they may have ended since.
  std::vector<ThreadFacts> stampers() const { return stampers_.as_they_began(); }
  // Beside a round trip: whether all whom it is to hear have been heard. Any thread.
  virtual bool greeted() const { return false; }
  // Since when it publishes nothing more of its own, beside a round trip because it was told so, in a chain
  // because its sources have sent their last; kAbsent: it does. Any thread.
  virtual std::int64_t silent_ns() const { return kAbsent; }
  // The measured node of a round trip, once set up.
  void* node() const { return node_; }
  // What ended the run in its midst, after run(): the middleware could not be set up anew.
  virtual std::optional<Failure> failure() const { return std::nullopt; }
  // Doubts that this measurement saw in its own run.
  virtual Json::Array warnings() const { return {}; }

 protected:
  bool stopped() const noexcept { return b_.stop.load(std::memory_order_relaxed); }
  bool warm(std::int64_t k) const noexcept { return k < b_.config.warm_up; }
  std::int64_t status(Status s, std::int64_t k) const noexcept { return warm(k) ? s | kWarmUpFlag : s; }
  // Opens the usage window before the first measured release: of the one thread that stamps, if it is known.
  // Prepares for it, and for the thread's first stamp, as the warm-up begins.
  void enter(std::int64_t k) noexcept {
    if (window_open_) return;
    if (!prepared_) {
      b_.usage.prepare();
      Stampers::own_tid();
    }
    prepared_ = true;
    if (warm(k)) return follow_stamper();
    window_open_ = true;
    b_.usage.open();
  }
  void leave() noexcept {
    if (stampers_.several() || (stampers_.only() != 0 && stampers_.only() != b_.usage.tid()))
      b_.usage.disown();
    if (window_open_) b_.usage.close();
    window_open_ = false;
  }
  void follow_stamper() noexcept {
    if (const int tid = stampers_.only(); tid != 0 && tid != gettid()) b_.usage.follow(tid);
  }
  rtm_overrun overrun_or(rtm_overrun otherwise) const noexcept {
    return b_.config.overrun.value_or(otherwise);
  }
  Json grid_json(const Grid& grid, const char* from) const {
    return Json(Json::Object{{"t0_ns", grid.t0_ns}, {"period_ns", grid.period_ns}, {"t0_from", from}});
  }

  Bench& b_;
  void* node_ = nullptr;
  Stampers stampers_;

 private:
  bool prepared_ = false;
  std::atomic<bool> window_open_{false};
};

// The columns that the measurement records, status last (spec/sample-log.md).
std::vector<std::string> columns_of(const Config& config);
// Index of the columns whose difference is the judged quantity: later minus earlier.
struct Judged {
  std::size_t later, earlier;
  std::int64_t minus_ns;  // one_shot: the timeout
};
Judged judged_of(const Config& config);

std::unique_ptr<Measurement> make_wakeup(Bench& bench);
std::unique_ptr<Measurement> make_one_shot(Bench& bench);
std::unique_ptr<Measurement> make_periodic(Bench& bench);
std::unique_ptr<Measurement> make_roundtrip_client(Bench& bench);
std::unique_ptr<Measurement> make_roundtrip_server(Bench& bench);
std::unique_ptr<Measurement> make_beside(Bench& bench);
std::unique_ptr<Measurement> make_request_client(Bench& bench);
std::unique_ptr<Measurement> make_request_server(Bench& bench);
std::unique_ptr<Measurement> make_cycle(Bench& bench);
std::unique_ptr<Measurement> make_chain(Bench& bench);
std::unique_ptr<Measurement> make_discovery(Bench& bench);
std::unique_ptr<Measurement> make_measurement(Bench& bench);

}  // namespace rtmeter
