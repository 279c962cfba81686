#include "loop.hpp"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "errors.hpp"
#include "header.hpp"
#include "system/audit.hpp"
#include "writer_cpus.hpp"

namespace rtmeter {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kDefaultWholeNs = 4 * 3600 * kSecond;
constexpr std::int64_t kDefaultLateBytes = std::int64_t{256} << 20;
constexpr std::int64_t kMostNs = std::int64_t{1} << 56;  // two years, as of every duration of rtmeter
constexpr std::int64_t kFarNs = 3600 * kSecond;  // a due time further away is another clock's
constexpr std::int64_t kSlack = 16;  // of a period: so much before a release a due time is still its own
constexpr std::uint64_t kBatchesBetweenLooks = 200;  // some ten seconds

std::int64_t checked(const char* field, std::int64_t value, std::int64_t fallback, std::int64_t least) {
  if (value == 0 && fallback != 0) return fallback;
  if (value < least || value >= kMostNs)
    throw Failure(
        field, std::to_string(value), "is no duration or size that a loop can have",
        "give " + std::to_string(least) + " to 2^56" + (fallback != 0 ? ", or 0 for the default" : ""));
  return value;
}

std::int64_t warm_up_releases(std::int64_t period_ns, std::int64_t warm_up_ns) {
  const std::int64_t ns = checked("warm_up_ns", warm_up_ns, kSecond, 1);
  return (ns + period_ns - 1) / period_ns;
}

Keeping keeping_of(const std::string& name, const std::string& folder, std::int64_t period_ns,
                   std::int64_t deadline_ns, std::int64_t warm_up, const rtm_loop_options& o) {
  const std::int64_t whole_ns = checked("whole_ns", o.whole_ns, kDefaultWholeNs, 8);
  drop_whole_logs_of_earlier_starts(folder, whole_ns);
  return {folder,
          period_ns,
          deadline_ns,
          warm_up,
          whole_ns,
          checked("late_bytes", o.late_bytes, kDefaultLateBytes, 1),
          loop_header(name, period_ns, deadline_ns, o.miss_ratio, warm_up)};
}

double checked_ratio(double ratio) {
  if (!(ratio >= 0.0 && ratio < 1.0))
    throw Failure("miss_ratio", std::to_string(ratio), "is no share of releases", "give 0 (none) up to 1");
  return ratio;
}

std::unique_ptr<KernelTrace> trace_of(std::uint32_t flags) {
  if ((flags & ~std::uint32_t{RTM_LOOP_CATCH_UP | RTM_LOOP_TRACE_MARKER | RTM_LOOP_BREAK_TRACE}) != 0)
    throw Failure("flags", std::to_string(flags), "has a flag that this library does not know",
                  "build with the header of the library that is linked");
  const bool mark = (flags & RTM_LOOP_TRACE_MARKER) != 0, stop = (flags & RTM_LOOP_BREAK_TRACE) != 0;
  return mark || stop ? std::make_unique<KernelTrace>(mark, stop, "flags") : nullptr;
}

}  // namespace

Loop::Loop(const std::string& name, std::int64_t period_ns, const rtm_loop_options& o)
    : period_ns_(checked("period_ns", period_ns, 0, 1000)),
      deadline_ns_(checked("deadline_ns", o.deadline_ns, period_ns, 1)),
      warm_up_(warm_up_releases(period_ns, o.warm_up_ns)), slack_ns_(period_ns / kSlack),
      ticks_(Ticks::Rule::jumps, period_ns, warm_up_), catch_up_((o.flags & RTM_LOOP_CATCH_UP) != 0),
      name_(name), on_late_(o.on_late), context_(o.context), trace_(trace_of(o.flags)),
      start_((checked_ratio(o.miss_ratio), o.folder == nullptr ? "results" : o.folder), name),
      keeper_(keeping_of(name, start_.path(), period_ns, deadline_ns_, warm_up_, o)),
      recorder_(keeper_, JobRow::kColumns, ring_rows_for(period_ns, JobRow::kColumns), WhenFull::count,
                [this](const std::int64_t*, std::size_t) { look_at_threads(); }) {
  recording_ = &recorder_;
  recorder_.start({});
  keep_off(recorder_.writer_tid(), {static_cast<int>(gettid())});
  start_.keep();
}

Loop::~Loop() = default;

std::int64_t Loop::sleep() noexcept {
  if (!ticks_.known()) {
    ticks_ = Ticks(Ticks::Rule::reported, period_ns_, warm_up_);
    ticks_.fix(clock_.first_release_ns(period_ns_));
  }
  std::int64_t k = ticks_.next();
  if (!catch_up_ || over_.load(std::memory_order_relaxed)) {  // nothing is served any more once it is over
    const std::int64_t free_ns = clock_.now_ns();
    if (ticks_.grid().release_ns(k) < free_ns) k = std::max(k, ticks_.grid().latest(free_ns - 1) + 1);
  }
  const std::int64_t release_ns = ticks_.grid().release_ns(k);
  wake(clock_.reach_ns(release_ns), release_ns);
  return release_ns;
}

void Loop::wake(std::int64_t now_ns, std::int64_t due_ns) noexcept {
  if (over_.load(std::memory_order_relaxed)) return;
  if (due_ns != kAbsent &&
      (due_ns > now_ns + kFarNs || (due_ns < now_ns - kFarNs && !ticks_.known()))) {  // later: a long stall
    add_one(refused_);
    due_ns = kAbsent;
  }
  if (tid_.load(std::memory_order_relaxed) == 0) begin(due_ns);
  if (working_.load(std::memory_order_relaxed)) abandon();
  const std::int64_t next = ticks_.next();
  k_ = ticks_.serve(now_ns, due_ns);
  if (k_ < next) return add_one(extra_);
  release_ns_ = ticks_.grid().release_ns(k_);
  if (due_ns != kAbsent && due_ns - release_ns_ > slack_ns_) [[unlikely]]
    add_one(off_grid_);
  wake_ns_ = now_ns;
  working_.store(true, std::memory_order_release);
  told_ = false;
  if (const std::int64_t first = std::max(next, warm_up_); k_ > first) [[unlikely]]
    note_late(first, ticks_.grid().release_ns(first), now_ns);  // and each up to k_ is skipped
  else if (now_ns - release_ns_ > deadline_ns_) [[unlikely]]
    note_late(k_, release_ns_, now_ns);
}

void Loop::done(std::int64_t now_ns) noexcept {
  if (over_.load(std::memory_order_relaxed)) return;
  if (!working_.load(std::memory_order_relaxed)) return add_one(stray_);
  hand_over(now_ns, kServed);
  if (now_ns - release_ns_ > deadline_ns_) [[unlikely]]
    note_late(k_, release_ns_, now_ns);
}

void Loop::hand_over(std::int64_t done_ns, std::int64_t outcome) noexcept {
  const std::int64_t row[JobRow::kColumns] = {k_, release_ns_, wake_ns_, done_ns, status_of(outcome)};
  recording_->record(row);
  working_.store(false, std::memory_order_relaxed);
}

// The first wake-up.
[[gnu::noinline]] void Loop::begin(std::int64_t due_ns) noexcept {
  tid_.store(static_cast<int>(gettid()), std::memory_order_release);
  if (due_ns != kAbsent && !ticks_.known())
    ticks_ = Ticks(Ticks::Rule::reported, period_ns_, warm_up_, slack_ns_);
}

// A wake-up whose work was never said to have ended: later than anything.
[[gnu::noinline]] void Loop::abandon() noexcept {
  add_one(unfinished_);
  hand_over(kAbsent, kLost);
}

[[gnu::noinline]] void Loop::note_late(std::int64_t k, std::int64_t release_ns,
                                       std::int64_t stamp_ns) noexcept {
  if (k < warm_up_ || (told_ && k == k_)) return;
  told_ = k == k_;
  if (trace_) trace_->late(name_.c_str(), k, release_ns, stamp_ns);
  if (on_late_ != nullptr) on_late_(context_, k, release_ns, stamp_ns);
}

// Writer thread: at first, and now and then, where the measured thread runs.
void Loop::look_at_threads() {
  const int tid = tid_.load(std::memory_order_acquire), writer = static_cast<int>(gettid());
  if (batches_++ % kBatchesBetweenLooks != 0) return;
  keep_off(writer, {tid});
  if (batches_ > 1) return;
  try {
    Json cpus = Json::array();
    for (const int cpu : get_affinity(tid)) cpus.push(cpu);
    keeper_.update(
        Json(Json::Object{{"threads", to_json(audit_threads({tid}, {writer}))},
                          {"effective", Json(Json::Object{{"scheduling", to_json(get_scheduling(tid))},
                                                          {"cpus", cpus},
                                                          {"overrun", catch_up_ ? "catch_up" : "skip"}})}}));
  } catch (const std::exception&) {  // the thread has ended meanwhile: nothing is known of it
  }
}

Json Loop::last_facts() const {
  Json facts = Json::object();
  facts["outcome"] = "complete";
  facts["counters"] = Json(Json::Object{{"overflow", recorder_.overflow()},
                                        {"extra_wakes", extra_.load()},
                                        {"stray_dones", stray_.load()},
                                        {"unfinished", unfinished_.load()},
                                        {"due_refused", refused_.load()},
                                        {"due_off_grid", off_grid_.load()}});
  if (ticks_.known()) {
    facts["ticks"] = ticks_.name();
    facts["grid"] = Json(Json::Object{
        {"t0_ns", ticks_.grid().t0_ns}, {"period_ns", period_ns_}, {"t0_from", ticks_.t0_from()}});
  }
  facts["warnings"] = loop_doubts(ticks_, refused_.load(), off_grid_.load());
  return facts;
}

// How long one that has passed could still be served in time: sleep() goes on to the next one; a program that
// catches up or sleeps by itself serves it, but without due times only the latest.
std::int64_t Loop::open_ns() const {
  const std::string_view grid = ticks_.t0_from();
  if (grid == "core" && !catch_up_) return 0;
  return grid == "inferred" ? std::min(deadline_ns_ + 1, period_ns_) : deadline_ns_ + 1;
}

void Loop::end(std::int64_t now_ns) {
  if (ended_) return keeper_.tell();
  ended_ = true;
  over_.store(true);
  recorder_.finish();
  const bool working = working_.load(std::memory_order_acquire);
  const std::int64_t row[JobRow::kColumns] = {k_, release_ns_, wake_ns_, kAbsent, status_of(kLost)};
  if (wake_ns_ - release_ns_ <= kFarNs && keeper_.settle(working ? row : nullptr, now_ns, open_ns()))
    add_one(unfinished_);
  keeper_.finish(last_facts());
}

void Loop::disown() noexcept {
  inherited_ = true;
  over_.store(true, std::memory_order_relaxed);
  start_.disown();
}

}  // namespace rtmeter
