// The probe: config in, sample log and status lines out (spec/probe.md).
#include "rtmeter/probe.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <optional>

#include "errors.hpp"
#include "measure/measurement.hpp"
#include "measure/second_topic.hpp"
#include "probe/break_on_late.hpp"
#include "probe/check_threads.hpp"
#include "probe/doubts.hpp"
#include "probe/effective.hpp"
#include "probe/instrument.hpp"
#include "probe/log_header.hpp"
#include "probe/methods.hpp"
#include "probe/oversight.hpp"
#include "probe/polling.hpp"
#include "probe/progress.hpp"
#include "probe/status.hpp"
#include "probe/trials.hpp"
#include "system/affinity.hpp"
#include "system/audit.hpp"
#include "system/cpu_dma_latency.hpp"
#include "system/deadline_overruns.hpp"
#include "system/memory.hpp"
#include "system/other_clock.hpp"
#include "system/path.hpp"

namespace rtmeter {
namespace {

constexpr int kComplete = 0, kError = 1, kInterrupted = 4;

// Set when the run shall end; the clock's sleeps look at it too. One run a process.
std::atomic<bool>& stop_requested() {
  static std::atomic<bool> stop{false};
  return stop;
}

// One run, from config to end frame. Everything it makes is undone when it goes.
class Run {
 public:
  Run(const Config& config, const rtm_adapter& adapter, Clock& clock, std::atomic<bool>& stop, StatusOut& out,
      bool tries)
      : config_(config), clock_(clock), stop_(stop), out_(out), tries_(tries),
        description_(describe(adapter, nullptr)), drive_(choose_drive(description_, config)),
        receive_(choose_receive(description_, config, drive_)), columns_(columns_of(config)),
        progress_(judged_of(config), columns_.size(), config.total()),
        session_(adapter, config, drive_, receive_),
        breaks_(config.break_on_late && !config.only_serves()
                    ? std::make_unique<BreakOnLate>(config, judged_of(config), columns_.size(), stop)
                    : nullptr),
        log_(config.log, log_header(config, description_, clock.scripted())),
        instrument_(measure_instrument(log_, columns_.size())),
        recorder_(log_, columns_.size(), ring_rows_for(config.period_ns, columns_.size()),
                  clock.scripted() ? WhenFull::wait : WhenFull::count,
                  [this](const std::int64_t* rows, std::size_t n) {
                    progress_.see(rows, n);
                    if (breaks_) breaks_->see(rows, n);
                  }),
        bench_{config_, drive_, receive_, clock_, session_, recorder_, usage_, counters_, stop_, watchdog_},
        oversight_({config_, clock_, stop_, out_, session_, progress_, [this] { return recorder_.failed(); },
                    [this] { return recorder_.settled(); },
                    [this] {
                      if (shared_clock_) shared_clock_->look();
                      if (realtime_clock_) realtime_clock_->look();
                      tell_once(told_greeted_, measurement_->greeted(), {{"event", "greeted"}});
                      const std::int64_t silent_ns = measurement_->silent_ns();
                      tell_once(told_silent_, silent_ns != kAbsent,
                                {{"event", "silent"}, {"since_ns", silent_ns}});
                    },
                    [this](const Failure& failure) {
                      error_ = failure;
                      return conclude();
                    }},
                   description_.find("name")->as_string()) {}

  // The middleware's threads call back into the measurement: they end first.
  ~Run() {
    if (second_topic_) second_topic_->stop();
    if (measurement_) measurement_->end();
    oversight_.let_go();
    session_.stop();
    oversight_.end();  // last: any of these may hang
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  int operator()() {
    try {
      measure();
    } catch (const std::exception& error) {
      oversight_.move_on(Phase::ending);
      error_ = as_failure(error);
    }
    return oversight_.leave_with(conclude());
  }

 private:
  using Phase = Oversight::Phase;

  void tell_once(bool& told, bool is_so, const Json::Object& event) {
    if (told || !is_so) return;
    told = true;
    out_.write(Json(event));
  }

  void measure() {
    if (config_.prefault_heap_bytes > 0) share_one_heap();
    recorder_.start(config_.cpus);
    oversight_.start(watchdog_, recorder_.writer_tid());
    set_up();
    announce();
    path_.begin();
    ran_ = true;
    oversight_.move_on(Phase::measuring);
    tries_ ? try_calls(bench_, out_) : measurement_->run();
    oversight_.move_on(Phase::ending);
    if (second_topic_) second_topic_->stop();
    recorder_.finish();
    if (const auto objection = oversight_.objection()) throw Failure(*objection);
    if (session_.broken()) throw broken();
    if (const auto failure = measurement_->failure()) throw Failure(*failure);
    check_components_seen();
  }

  // A shape that did not take is an error.
  void check_components_seen() const {
    const char* seen = measurement_->components();
    if (!config_.components || seen == nullptr || name_of(*config_.components) == std::string(seen)) return;
    throw Failure("components", name_of(*config_.components), std::string("they were seen on ") + seen,
                  "leave it out, or choose the adapter's options accordingly (`rtmeter adapters`)");
  }

  Failure broken() const {
    const Json known = session_.describe();
    const Json* why = known.find("broken");
    return {"middleware", description_.find("name")->as_string(),
            why == nullptr ? "it ended while the run was measured" : why->as_string(),
            "see the middleware's own messages; then measure again"};
  }

  // The order decides what the middleware's threads inherit: affinity and memory always, the measured
  // policy only with before_init.
  void set_up() {
    SecondTopic::check(description_, config_);
    if (config_.shared_clock) shared_clock_.emplace(*config_.shared_clock);
    if (config_.kernel_stamps) realtime_clock_.emplace("realtime");
    if (config_.scheduling.policy == Scheduling::Policy::deadline) {
      overruns_.emplace(config_.cpus);
      usage_.count_overruns(overruns_->count());
    }
    check_components(description_, config_);
    check_interface(description_, config_);
    if (!clock_.scripted()) check_polling(description_, config_, drive_, receive_, cpu_share());
    if (!config_.cpus.empty()) set_affinity(0, config_.cpus);
    if (config_.lock_memory) lock_memory();
    if (config_.prefault_heap_bytes > 0) prefault_heap(config_.prefault_heap_bytes);
    if (config_.prefault_stack_bytes > 0) prefault_stack(config_.prefault_stack_bytes);
    if (config_.cpu_dma_latency) cpu_dma_latency_.emplace();
    if (config_.timer_slack_ns) set_timer_slack(*config_.timer_slack_ns, "timer_slack_ns");
    if (config_.apply_before_init) set_scheduling(0, config_.scheduling, "scheduling");
    // On a scripted clock it is the adapter that lets time pass.
    if (config_.measurement != RTM_WAKEUP || config_.before != Before::none || clock_.scripted())
      session_.start();
    measurement_ = make_measurement(bench_);
    measurement_->set_up();
    if (config_.second_topic) {
      second_topic_.emplace(bench_, measurement_->node());
      if (config_.role == RTM_ROLE_CLIENT) second_topic_->connect();
    }
    session_.refuse_unread_options(description_);
    if (!config_.apply_before_init) set_scheduling(0, config_.scheduling, "scheduling");
    if (overruns_) ask_for_overrun_signal("scheduling");
    measurement_->begin();
    if (second_topic_) second_topic_->start();
    set_children();
  }

  bool asks_of_children() const { return config_.child_threads || !config_.child_cpus.empty(); }
  bool is_childless() const {
    return asks_of_children() && std::none_of(before_.begin(), before_.end(),
                                              [](const ThreadFacts& t) { return t.role == "middleware"; });
  }

  void set_children() const {
    if (asks_of_children()) set_threads(audit(), config_.child_threads, config_.child_cpus);
  }

  std::vector<ThreadFacts> audit() const {
    std::vector<int> measured{static_cast<int>(getpid())};
    if (measurement_)
      for (const int tid : measurement_->measured_tids()) measured.push_back(tid);
    std::vector<int> service = oversight_.tids();
    service.push_back(recorder_.writer_tid());
    if (second_topic_) service.push_back(second_topic_->tid());
    if (overruns_) service.push_back(overruns_->tid());
    std::vector<ThreadFacts> threads = audit_threads(measured, service);
    if (!measurement_) return threads;
    return with_stampers(std::move(threads), measurement_->stamping_tids(), measurement_->stampers(),
                         measured);
  }

  // Settings read back, threads, and what the middleware says of itself: into log and status.
  void announce() {
    before_ = audit();
    check_threads(before_, config_);
    adapter_ = session_.started() ? session_.describe() : description_;
    Json facts(Json::Object{{"adapter", adapter_facts(Json())},
                            {"effective", effective(before_)},
                            {"threads", to_json(before_)}});
    put_clocks(facts);
    log_.update(facts);
    log_.update(Json(Json::Object{{"config", session_.in_effect(config_.as_read)}}));
    const Json* server = facts.find("adapter")->find("server");
    inline_server_ = server != nullptr && server->is_string() && server->as_string() == "inline";
    const Json* endpoint = facts.find("adapter")->find("endpoint");
    facts["event"] = "ready";
    facts["pid"] = static_cast<std::int64_t>(getpid());
    facts["role"] = name_of(config_.role);
    facts["endpoint"] = endpoint != nullptr ? *endpoint : Json();
    out_.write(facts);
  }

  Json adapter_facts(const Json& path) const {
    return config_.measurement == RTM_CYCLE ? within_process(adapter_, path) : adapter_;
  }

  Json effective(const std::vector<ThreadFacts>& threads) const {
    return effective_settings(bench_, threads, cpu_dma_latency_.has_value(), measurement_.get());
  }

  // Ends log and status; the exit code. Measured thread, or the supervisor's once the run is given up.
  int conclude() {
    try {
      recorder_.finish();
    } catch (const Failure& failure) {
      if (!error_) error_ = failure;
    }
    try {
      if (!error_ && ran_) check_threads(audit(), config_);
    } catch (const Failure& failure) {
      error_ = failure;
    }
    if (!error_ && recorder_.failed())
      error_ = Failure("log", config_.log, recorder_.failure(), "free space, then measure again");
    for (auto* clock : {&shared_clock_, &realtime_clock_})
      if (*clock) (*clock)->look_now();  // nothing is stamped any more
    const bool interrupted = !error_ && !config_.only_serves() && stop_.load();
    Json end = end_frame(error_ ? "failed" : interrupted ? "interrupted" : "complete");
    try {
      log_.finish(end);
    } catch (const Failure& failure) {
      if (!error_) error_ = failure;
      end["outcome"] = "failed";
    }
    // Before what follows, which waits for the reader: a probe that nobody reads is given up.
    const int code = oversight_.leave_with(error_ ? kError : interrupted ? kInterrupted : kComplete);
    if (error_) out_.error(*error_);
    end["event"] = "end";
    out_.write(end);
    return code;
  }

  Json end_frame(const char* outcome) const {
    Json e = Json::object();
    e["outcome"] = outcome;
    e["error"] = error_ ? to_json(*error_) : Json();
    e["rows"] = recorder_.recorded();
    e["counters"] = to_json(counters_, recorder_.overflow(), session_.refused_calls());
    e["usage"] = ran_ ? usage_.to_json() : Json();
    Json instrument = instrument_;
    instrument["ring_rows"] = recorder_.ring_rows();
    instrument["ring_holds_ns"] = holds_ns(recorder_.ring_rows(), config_.period_ns);
    instrument["ring_high_water"] = recorder_.high_water();
    e["instrument"] = instrument;
    put_clocks(e);
    if (second_topic_ && ran_) e["second_topic"] = second_topic_->to_json();
    if (ran_) {
      const Json path = path_.to_json(published());
      e["path"] = path;
      e["adapter"] = adapter_facts(path);
    }
    if (measurement_ && ran_) {
      const Json facts = measurement_->facts();
      for (const auto& [key, value] : facts.as_object())
        if (key != "overrun") e[key] = value;
      const std::vector<ThreadFacts> after = audit();
      e["effective"] = effective(after);
      e["threads"] = to_json(with_ended(before_, after));
    }
    e["warnings"] = warnings();
    return e;
  }

  void put_clocks(Json& facts) const {
    if (shared_clock_) facts["shared_clock"] = shared_clock_->to_json();
    if (realtime_clock_) facts["realtime_clock"] = realtime_clock_->to_json();
  }

  // One message a row; in a cycle a request and its answer.
  Published published() const {
    const bool is_cycle = config_.measurement == RTM_CYCLE;
    if (!config_.is_exchange()) return {};
    const std::uint64_t rows = recorder_.recorded(), unsent = std::min(rows, progress_.unsent());
    return {(rows - unsent) * (is_cycle ? 2 : 1), config_.payload_bytes, is_cycle || inline_server_};
  }

  Json warnings() const {
    Json list = measurement_ && ran_ ? Json(measurement_->warnings()) : Json::array();
    if (shared_clock_ && ran_) add_doubts_of_shared_clock(shared_clock_->to_json(), list);
    if (breaks_ && breaks_->doubt()) list.push(*breaks_->doubt());
    if (second_topic_ && ran_ && second_topic_->silent()) list.push(second_topic_->doubt());
    if (ran_ && is_childless()) list.push(doubt_of_children());
    if (const auto unknown = usage_.doubt(); ran_ && unknown) list.push(*unknown);
    if (const auto short_of = overruns_ ? doubt_of_overruns(config_, overruns_->count()) : std::nullopt)
      list.push(*short_of);
    if (oversight_.rescues() > 0) list.push(doubt_of_rescues(oversight_.rescues()));
    if (session_.refused_calls() > 0)
      list.push(doubt_of_refused(session_.refused_calls(), session_.exception()));
    if (!ran_ || error_) return list;
    const auto& p = progress_;
    if (const auto d = doubt_of_lost(config_, adapter_, p.measured(), p.lost(), p.skipped())) list.push(*d);
    return list;
  }

  const Config& config_;
  Clock& clock_;
  std::atomic<bool>& stop_;
  StatusOut& out_;
  const bool tries_;  // calls of the contract, instead of measuring
  const Json description_;
  const rtm_drive drive_;
  const rtm_receive receive_;
  const std::vector<std::string> columns_;
  Progress progress_;
  Session session_;
  const std::unique_ptr<BreakOnLate> breaks_;  // null unless asked for
  LogWriter log_;
  const Json instrument_;
  Recorder recorder_;
  UsageWindow usage_;
  Counters counters_;
  Watchdog watchdog_{INT64_MAX};
  Bench bench_;
  std::optional<CpuDmaLatency> cpu_dma_latency_;
  std::optional<DeadlineOverruns> overruns_;  // with a deadline policy
  std::optional<OtherClock> shared_clock_;    // that another host has, too
  std::optional<OtherClock> realtime_clock_;  // by which the kernel stamps messages
  std::unique_ptr<Measurement> measurement_;
  std::optional<SecondTopic> second_topic_;
  std::vector<ThreadFacts> before_;
  std::optional<Failure> error_;
  Path path_;
  Json adapter_;  // what the middleware said of itself when all was set up
  bool inline_server_ = false, told_greeted_ = false, told_silent_ = false;
  std::atomic<bool> ran_{false};  // the measurement is set up, and no longer touched but by its run
  Oversight oversight_;
};

int usage_error(const char* program) {
  std::cerr << "usage: " << program << " --describe | --config FILE.json | --try FILE.json (spec/probe.md)\n";
  return kError;
}

}  // namespace

int probe_main(int argc, char** argv, const rtm_adapter& adapter, Clock& clock) {
  if (argc == 2 && std::strcmp(argv[1], "--describe") == 0) return print_description(adapter);
  const bool tries = argc == 3 && std::strcmp(argv[1], "--try") == 0;
  if (argc != 3 || (!tries && std::strcmp(argv[1], "--config") != 0)) return usage_error(argv[0]);
  StatusOut out;
  Supervisor::block_signals();
  try {
    const Config config = read_config(argv[2]);
    require_methods(adapter, describe(adapter, nullptr));
    return Run(config, adapter, clock, stop_requested(), out, tries)();
  } catch (const std::exception& error) {
    out.error(as_failure(error));
    return kError;
  }
}

}  // namespace rtmeter

int rtm_probe_main(int argc, char** argv, const rtm_adapter* adapter) {
  static rtmeter::MonotonicClock clock(rtmeter::stop_requested());
  return rtmeter::probe_main(argc, argv, *adapter, clock);
}
