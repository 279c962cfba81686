// chain: the stages of one process. A source is sampled at its releases; a stage passes on each input at
// once, the newest of each at its own releases, or the newest of each once all are new. Samples go on
// unchanged.
#include <algorithm>
#include <deque>

#include "errors.hpp"
#include "measure/chain_message.hpp"
#include "measure/measurement.hpp"
#include "system/guard.hpp"

namespace rtmeter {
namespace {

constexpr std::int64_t kAgain = 20'000'000, kHour = 3'600'000'000'000;

class Chain final : public Measurement {
 public:
  explicit Chain(Bench& bench) : Measurement(bench) {
    for (const ChainStage& asked : bench.config.chain->stages)
      stages_.emplace_back(*this, asked, static_cast<std::int64_t>(stages_.size()),
                           bench.config.payload_bytes);
    for (const Stage& stage : stages_)
      if (stage.inputs.empty()) unsent_ += stage.asked.samples;
  }

  void set_up() override {
    for (Stage& stage : stages_) {
      stage.node = b_.session.create_node(stage.asked.name);
      stage.publisher = b_.session.create_publisher(stage.node, stage.asked.name);
    }
    for (Stage& stage : stages_)
      for (Input& input : stage.inputs)
        b_.session.create_subscriber(stage.node, input.name, &Chain::on_message, &input);
    node_ = stages_.front().node;
    if (!b_.clock.scripted()) meet();
  }

  void run() noexcept override {
    if (!await_go()) return;
    enter(0);
    while (!stopped()) {
      Stage& next = *std::min_element(stages_.begin(), stages_.end(),
                                      [](const Stage& a, const Stage& b) { return a.next_ns < b.next_ns; });
      const std::int64_t until_ns = std::min({next.next_ns, end_ns_, look_again_ns()});
      hear_until(until_ns);
      if (stopped()) break;
      if (next.next_ns <= until_ns)
        release(next);
      else if (end_ns_ <= until_ns)
        break;
    }
    leave();
    settle();
  }

  std::int64_t silent_ns() const override { return silent_ns_.load(std::memory_order_acquire); }
  Json facts() const override {
    return Json(Json::Object{{"overrun", name_of(RTM_CATCH_UP)},
                             {"grid", grid_json({t0_ns_, b_.config.period_ns}, "core")}});
  }

 private:
  struct Stage;

  struct Input {
    Input(Chain& its_chain, Stage& its_stage, const ChainStage::Input& given, std::size_t first_way,
          std::uint32_t bytes)
        : chain(its_chain), stage(its_stage), name(given.stage), first(first_way), samples(given.ways),
          fresh(given.ways), reader(bytes, given.ways) {}
    Chain& chain;
    Stage& stage;
    const std::string name;
    const std::size_t first;             // of the stage's ways: that of its own first
    std::vector<Sample> samples, fresh;  // of the newest message, and of the one that comes
    const ChainMessage reader;
    std::int64_t received_ns = kAbsent;
    std::uint64_t sequence = 0, seen = 0;  // of the newest; bit i of seen: sequence − i has come
    bool has = false, used = false;        // a message; passed on
    bool is_new = false;                   // fusion: since the last output
    bool heard = false;                    // anything, before the start
  };

  struct Stage {
    Stage(Chain& chain, const ChainStage& given, std::int64_t place, std::uint32_t bytes)
        : asked(given), number(place), writer(bytes, given.ways()), out(given.ways()),
          received(given.ways()) {
      std::size_t way = 0;
      for (const ChainStage::Input& input : given.inputs) {
        inputs.emplace_back(chain, *this, input, way, bytes);
        way += input.ways;
      }
    }
    const ChainStage& asked;
    const std::int64_t number;
    ChainMessage writer;
    std::deque<Input> inputs;
    std::vector<Sample> out;              // by way: what goes out next
    std::vector<std::int64_t> received;   // by way: when it came
    std::uint64_t sequence = 0;
    std::int64_t next_ns = INT64_MAX, releases = 0;
    void* node = nullptr;
    void* publisher = nullptr;
  };

  // Publishes greetings until every stage has heard all its inputs; they go on until the start.
  void meet() {
    const std::int64_t give_up_ns = b_.clock.now_ns() + b_.config.connect_timeout_ns;
    const auto deaf = [this]() -> const Input* {
      for (const Stage& stage : stages_)
        for (const Input& input : stage.inputs)
          if (!input.heard) return &input;
      return nullptr;
    };
    while (const Input* input = deaf()) {
      if (stopped()) return;
      if (b_.clock.now_ns() >= give_up_ns)
        throw Failure("stage", input->stage.asked.name,
                      "heard nothing of " + input->name + " within " +
                          std::to_string(b_.config.connect_timeout_ns / 1'000'000) + " ms",
                      "see the middleware's messages; or raise the connect timeout");
      greet();
      hear_until(b_.clock.now_ns() + kAgain);  // all of it: a wait may end with one message
    }
  }
  void greet() noexcept {
    for (Stage& stage : stages_)
      b_.session.offer(stage.publisher, stage.writer.message(RTM_SEQUENCE_HELLO, stage.out.data()));
  }

  // Whoever started all processes says when the first release is; false if the run is to end instead.
  bool await_go() noexcept {
    if (b_.clock.scripted()) {
      t0_ns_ = b_.clock.first_release_ns(b_.config.period_ns);
    } else {
      while ((t0_ns_ = told_to_go().load(std::memory_order_acquire)) == 0) {
        if (stopped()) return false;
        greet();
        hear_until(b_.clock.now_ns() + kAgain);
      }
    }
    for (Stage& stage : stages_)
      if (stage.asked.period_ns > 0) stage.next_ns = t0_ns_ + stage.asked.offset_ns;
    return true;
  }

  // All sources of this process have sent their last. On a scripted clock these are all there are; else
  // whoever started all processes says when the end is, once the sources of all have.
  void end_when_told() noexcept {
    const std::int64_t now_ns = b_.clock.now_ns();
    if (b_.clock.scripted()) {
      end_ns_ = now_ns + b_.config.chain->drain_ns;
      return;
    }
    told_to_go().store(0, std::memory_order_release);  // waits for the others, as at the start
    silent_ns_.store(now_ns, std::memory_order_release);
  }
  // When to look whether the end has been told.
  std::int64_t look_again_ns() noexcept {
    if (silent_ns() == kAbsent || end_ns_ != INT64_MAX) return INT64_MAX;
    const std::int64_t told_ns = told_to_go().load(std::memory_order_acquire);
    if (told_ns != 0) end_ns_ = told_ns;
    return told_ns != 0 ? told_ns : b_.clock.now_ns() + kAgain;
  }

  // Callbacks come meanwhile, on this thread.
  void hear_until(std::int64_t until_ns) noexcept {
    const bool hears =
        std::any_of(stages_.begin(), stages_.end(), [](const Stage& s) { return !s.inputs.empty(); });
    if (b_.clock.scripted() || !hears) {
      b_.clock.reach_ns(until_ns);
      return;
    }
    for (std::int64_t now_ns = b_.clock.now_ns(); now_ns < until_ns && !stopped(); now_ns = b_.clock.now_ns())
      b_.session.wait(std::min(until_ns - now_ns, kHour));
  }

  void release(Stage& stage) noexcept {
    const std::int64_t release_ns = stage.next_ns;
    const bool is_source = stage.inputs.empty();
    const std::int64_t k = stage.releases++;
    stage.next_ns =
        is_source && stage.releases == stage.asked.samples ? INT64_MAX : release_ns + stage.asked.period_ns;
    if (is_source) {
      stage.out[0] = {k, release_ns};
      stage.received[0] = kAbsent;
      pass_on(stage);
      if (--unsent_ == 0) end_when_told();
    } else {
      pass_on_newest(stage);
    }
  }

  static void on_message(void* user, const rtm_message* message) {
    auto& input = *static_cast<Input*>(user);
    const std::int64_t now_ns = input.chain.b_.clock.now_ns();
    input.chain.hear(input, *message, now_ns);
  }

  void hear(Input& input, const rtm_message& message, std::int64_t now_ns) noexcept {
    input.heard = true;
    stampers_.note();
    if (message.sequence == RTM_SEQUENCE_HELLO) return;
    if (!input.reader.read(message, input.fresh.data())) {
      note(b_.counters.corrupted);
      return;
    }
    const bool is_newest = !input.has || message.sequence > input.sequence;
    if (!is_newest) {
      if (came_before(input, message.sequence)) return note(b_.counters.duplicate);
      note(b_.counters.out_of_order);
    } else {
      remember(input, message.sequence);
    }
    Stage& stage = input.stage;
    if (stage.asked.period_ns == 0 && !stage.asked.fusion) {  // at once, whatever the order
      std::fill(stage.out.begin(), stage.out.end(), Sample{});
      take(stage, input, input.fresh, now_ns);
      input.has = input.used = true;
      pass_on(stage);
      return;
    }
    if (!is_newest) return overtaken(input, input.fresh, now_ns, kSkipped);
    if (input.has && !input.used) overtaken(input, input.samples, input.received_ns, kSkipped);
    input.samples.swap(input.fresh);
    input.received_ns = now_ns;
    input.has = input.is_new = true;
    input.used = false;
    if (!stage.asked.fusion) return;
    if (std::all_of(stage.inputs.begin(), stage.inputs.end(), [](const Input& i) { return i.is_new; }))
      pass_on_newest(stage);
  }

  // Of the last 64 messages it is known which have come.
  static void remember(Input& input, std::uint64_t sequence) noexcept {
    const std::uint64_t by = input.has ? sequence - input.sequence : 64;
    input.seen = (by < 64 ? input.seen << by : 0) | 1;
    input.sequence = sequence;
  }
  static bool came_before(Input& input, std::uint64_t sequence) noexcept {
    const std::uint64_t back = input.sequence - sequence;
    if (back >= 64) return false;
    const std::uint64_t bit = std::uint64_t{1} << back;
    const bool came = (input.seen & bit) != 0;
    input.seen |= bit;
    return came;
  }

  static void take(Stage& stage, const Input& input, const std::vector<Sample>& samples,
                   std::int64_t at_ns) noexcept {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      stage.out[input.first + i] = samples[i];
      stage.received[input.first + i] = at_ns;
    }
  }

  void pass_on_newest(Stage& stage) noexcept {
    std::fill(stage.out.begin(), stage.out.end(), Sample{});
    bool any = false;
    for (Input& input : stage.inputs) {
      if (!input.has) continue;
      take(stage, input, input.samples, input.received_ns);
      input.used = any = true;
      input.is_new = false;
    }
    if (any) pass_on(stage);
  }

  // Stamps, publishes, and records each sample that went out.
  void pass_on(Stage& stage) noexcept {
    if (stage.asked.re_stamps && !stage.inputs.empty()) re_stamp(stage);
    const rtm_message message = stage.writer.message(stage.sequence++, stage.out.data());
    const std::int64_t sent_ns = b_.clock.now_ns();
    b_.session.publish(stage.publisher, message);
    for (std::size_t way = 0; way < stage.out.size(); ++way)
      if (stage.out[way].index != kAbsent)
        record(stage, way, stage.out[way], stage.received[way], sent_ns, kServed);
  }

  // What nodes do that take their own time for the sample's: planted, to be found out.
  void re_stamp(Stage& stage) const noexcept {
    for (Sample& sample : stage.out)
      if (sample.index != kAbsent) sample.release_ns = b_.clock.now_ns();
  }

  void overtaken(const Input& input, const std::vector<Sample>& samples, std::int64_t at_ns,
                 Status status) noexcept {
    for (std::size_t i = 0; i < samples.size(); ++i)
      if (samples[i].index != kAbsent)
        record(input.stage, input.first + i, samples[i], at_ns, kAbsent, status);
  }

  void record(const Stage& stage, std::size_t way, const Sample& sample, std::int64_t received_ns,
              std::int64_t sent_ns, Status status) noexcept {
    const std::int64_t row[] = {
        stage.number, static_cast<std::int64_t>(way), sample.index, sample.release_ns, received_ns, sent_ns,
        status};
    b_.recorder.record(row);
  }

  // What was received and waits is in flight, and so are the releases that were due.
  void settle() noexcept {
    const std::int64_t now_ns = b_.clock.now_ns();
    b_.recorder.wait_for_room();
    for (Stage& stage : stages_) {
      for (const Input& input : stage.inputs)
        if (input.has && !input.used) overtaken(input, input.samples, input.received_ns, kInFlight);
      if (!stage.inputs.empty()) continue;
      for (; stage.next_ns <= now_ns && stage.releases < stage.asked.samples;
           stage.next_ns += stage.asked.period_ns)
        record(stage, 0, {stage.releases++, stage.next_ns}, kAbsent, kAbsent, kInFlight);
    }
  }

  static void note(std::atomic<std::uint64_t>& counter) noexcept {
    counter.fetch_add(1, std::memory_order_relaxed);
  }

  std::deque<Stage> stages_;  // inputs refer to them
  std::int64_t t0_ns_ = 0, end_ns_ = INT64_MAX;
  std::int64_t unsent_ = 0;  // samples of this process's sources
  std::atomic<std::int64_t> silent_ns_{kAbsent};
};

}  // namespace

std::unique_ptr<Measurement> make_chain(Bench& bench) { return std::make_unique<Chain>(bench); }

}  // namespace rtmeter
