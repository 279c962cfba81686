#include "measure/config.hpp"

#include "errors.hpp"
#include "measure/config_reader.hpp"
#include "system/limits.hpp"

namespace rtmeter {
namespace {

constexpr Name<rtm_measurement> kMeasurements[] = {
    {RTM_WAKEUP, "wakeup"},   {RTM_TIMER, "timer"}, {RTM_ROUNDTRIP, "roundtrip"}, {RTM_CYCLE, "cycle"},
    {RTM_REQUEST, "request"}, {RTM_CHAIN, "chain"}, {RTM_DISCOVERY, "discovery"}};
constexpr Name<rtm_role> kRoles[] = {{RTM_ROLE_SINGLE, "single"},
                                     {RTM_ROLE_CLIENT, "client"},
                                     {RTM_ROLE_SERVER, "server"},
                                     {RTM_ROLE_BESIDE, "beside"}};
constexpr Name<rtm_overrun> kOverruns[] = {{RTM_CATCH_UP, "catch_up"}, {RTM_SKIP, "skip"}};
constexpr Name<rtm_drive> kDrives[] = {
    {RTM_SPIN, "spin"}, {RTM_SLEEP_THEN_SPIN_SOME, "sleep_then_spin_some"}, {RTM_POLL, "poll"}};
constexpr Name<rtm_components> kComponents[] = {{RTM_ONE_THREAD, "one_thread"},
                                                {RTM_TWO_THREADS, "two_threads"}};
constexpr Name<rtm_receive> kReceives[] = {{RTM_RECEIVE_SPIN, "spin"},
                                           {RTM_RECEIVE_SPIN_ONCE, "spin_once"},
                                           {RTM_RECEIVE_LISTENER, "listener"},
                                           {RTM_RECEIVE_POLL, "poll"},
                                           {RTM_RECEIVE_CALL, "call"}};
constexpr Name<rtm_interface> kInterfaces[] = {{RTM_SERVICE, "service"}, {RTM_ACTION, "action"}};
constexpr Name<rtm_timer_mode> kModes[] = {{RTM_ONE_SHOT, "one_shot"}, {RTM_PERIODIC, "periodic"}};
constexpr Name<rtm_reliability> kReliabilities[] = {{RTM_BEST_EFFORT, "best_effort"},
                                                    {RTM_RELIABLE, "reliable"}};
constexpr Name<Before> kBefores[] = {
    {Before::none, "none"}, {Before::init, "init"}, {Before::init_and_node, "init_and_node"}};
constexpr Name<InFlight> kInFlights[] = {{InFlight::one, "one"}, {InFlight::open, "open"}};
constexpr Name<SecondPlace> kSecondPlaces[] = {{SecondPlace::same_node, "same_node"},
                                               {SecondPlace::same_process, "same_process"}};
constexpr Name<BesideAs> kBesideAs[] = {
    {BesideAs::subscriber, "subscriber"}, {BesideAs::publisher, "publisher"}, {BesideAs::node, "node"}};
constexpr Name<bool> kOthers[] = {{true, "cold"}, {false, "present"}};
constexpr Name<bool> kApplies[] = {{true, "before_init"}, {false, "after_init"}};

constexpr std::int64_t kMaxTime = 366LL * 86'400 * 1'000'000'000;  // a year
constexpr std::int64_t kMaxCount = std::int64_t{1} << 48;

ChainStage stage_from(const Json& json, const std::string& path) {
  Reader of(json, path);
  ChainStage stage;
  stage.name = required(of.text("name"), path + "name", "what its topic is called");
  stage.fusion = of.flag("fusion");
  stage.period_ns = of.integer("period_ns", 1, kMaxTime).value_or(0);
  stage.offset_ns = of.integer("offset_ns", 0, kMaxTime).value_or(0);
  stage.samples = of.integer("samples", 1, kMaxCount).value_or(0);
  stage.re_stamps = of.flag("re_stamps");
  if (const Json* inputs = of.get("inputs"); inputs != nullptr && inputs->is_array())
    for (const Json& one : inputs->as_array()) {
      Reader input(one, path + "inputs.");
      const auto ways = input.integer("ways", 1, 1024);
      stage.inputs.push_back(
          {required(input.text("stage"), path + "inputs.stage", "whom it hears"),
           static_cast<std::uint32_t>(required(ways, path + "inputs.ways", "how many lead there"))});
      input.refuse_unknown();
    }
  of.refuse_unknown();
  if (stage.inputs.empty() && (stage.period_ns == 0 || stage.samples == 0))
    throw Failure(path + "period_ns", std::to_string(stage.period_ns),
                  "a stage without inputs is a source: it needs a period and samples",
                  "give inputs, or period_ns and samples");
  if (stage.period_ns > 0 && stage.samples > kMaxTime / stage.period_ns)
    throw Failure(path + "samples", std::to_string(stage.samples), "takes longer than a year at this period",
                  "measure fewer releases");
  return stage;
}

std::optional<ChainConfig> chain_from(const Json* json, const Config& config) {
  if ((json != nullptr) != (config.measurement == RTM_CHAIN))
    throw Failure(
        "chain", json == nullptr ? "" : "{}",
        json == nullptr ? "is missing: the stages of this process" : "means nothing for this measurement",
        json == nullptr ? "add it to the config" : "leave it out");
  if (json == nullptr) return std::nullopt;
  Reader of(*json, "chain.");
  ChainConfig chain;
  chain.drain_ns = of.integer("drain_ns", 0, kMaxTime).value_or(0);
  bool has_source = false;
  if (const Json* stages = of.get("stages"); stages != nullptr && stages->is_array())
    for (const Json& one : stages->as_array()) {
      const std::string path = "chain.stages[" + std::to_string(chain.stages.size()) + "].";
      chain.stages.push_back(stage_from(one, path));
      const ChainStage& stage = chain.stages.back();
      has_source = has_source || stage.inputs.empty();
      if (std::size_t{8} + std::size_t{16} * stage.ways() > config.payload_bytes)
        throw Failure("payload_bytes", std::to_string(config.payload_bytes),
                      "is too small for the samples that stage " + stage.name + " carries",
                      "give at least " + std::to_string(8 + 16 * stage.ways()));
    }
  of.refuse_unknown();
  if (chain.stages.empty()) throw Failure("chain.stages", "[]", "names no stage", "give at least one stage");
  if (has_source != (config.role == RTM_ROLE_CLIENT))
    throw Failure("role", name_of(config.role), "does not fit the stages",
                  "a process with a source runs as client, one without as server");
  return chain;
}

std::optional<DiscoveryConfig> discovery_from(const Json* json, const Config& config) {
  const bool is_missing = json == nullptr;
  if (is_missing == (config.measurement == RTM_DISCOVERY))
    throw Failure("discovery", is_missing ? "" : "{}",
                  is_missing ? "is missing: its participants" : "means nothing for this measurement",
                  is_missing ? "add it to the config" : "leave it out");
  if (is_missing) return std::nullopt;
  Reader of(*json, "discovery.");
  DiscoveryConfig found;
  const auto count = of.integer("participants", 2, 1000);
  found.participants =
      static_cast<int>(required(count, "discovery.participants", "how many there are in all"));
  if (const auto one = of.integer("participant", 0, found.participants - 1))
    found.participant = static_cast<int>(*one);
  found.cold = of.choice("others", kOthers).value_or(true);
  of.refuse_unknown();
  if (config.loss_timeout_ns >= config.period_ns)
    throw Failure(
        "loss_timeout_ns", std::to_string(config.loss_timeout_ns),
        "is no shorter than the period: participants leave then, and start anew at the next release",
        "give less, or a longer period");
  return found;
}

std::optional<BesideConfig> beside_from(const Json* json, const Config& config) {
  const bool is_beside = config.role == RTM_ROLE_BESIDE;
  if (json == nullptr && is_beside)
    throw Failure("beside", "", "is missing: what this process is", "add it to the config");
  if (json == nullptr) return std::nullopt;
  if (config.measurement != RTM_ROUNDTRIP)
    throw Failure("beside", "{}", std::string("means nothing for ") + name_of(config.measurement),
                  "leave it out; it is for roundtrip");
  Reader of(*json, "beside.");
  BesideConfig found;
  constexpr std::int64_t kMost = 1000;
  found.subscribers = static_cast<int>(of.integer("subscribers", 1, kMost).value_or(1));
  found.publishers = static_cast<int>(of.integer("publishers", 1, kMost).value_or(1));
  found.background_nodes = static_cast<int>(of.integer("background_nodes", 0, kMost).value_or(0));
  found.as = of.choice("as", kBesideAs);
  found.number = static_cast<int>(of.integer("number", 1, kMost).value_or(0));
  of.refuse_unknown();
  if (is_beside != found.as.has_value() || is_beside != (found.number > 0))
    throw Failure("role", name_of(config.role), "does not fit beside.as and beside.number",
                  "give both to a process beside the ends, and none to client and server");
  return found;
}

}  // namespace

const char* name_of(rtm_measurement m) { return name_in(kMeasurements, m); }
const char* name_of(rtm_role r) { return name_in(kRoles, r); }
const char* name_of(rtm_overrun o) { return name_in(kOverruns, o); }
const char* name_of(rtm_drive d) { return name_in(kDrives, d); }
const char* name_of(rtm_components c) { return name_in(kComponents, c); }
const char* name_of(rtm_receive r) { return name_in(kReceives, r); }
const char* name_of(rtm_interface i) { return name_in(kInterfaces, i); }
const char* name_of(rtm_timer_mode m) { return name_in(kModes, m); }
const char* name_of(BesideAs a) { return name_in(kBesideAs, a); }
const char* name_of(SecondPlace p) { return name_in(kSecondPlaces, p); }

Config config_from_json(const Json& json) {
  Reader r(json);
  Config c;
  c.as_read = json;

  if (required(r.integer("version", 0, INT32_MAX), "version", "the config's version") != 1)
    throw Failure("version", json.find("version")->dump(), "this probe reads version 1",
                  "use the rtmeter that came with this probe");
  c.measurement = required(r.choice("measurement", kMeasurements), "measurement", "what to measure");
  c.role = r.choice("role", kRoles).value_or(RTM_ROLE_SINGLE);
  if ((c.has_two_ends() || c.measurement == RTM_CHAIN) == (c.role == RTM_ROLE_SINGLE))
    throw Failure(
        "role", name_of(c.role), std::string("does not fit ") + name_of(c.measurement),
        "roundtrip, request and chain run as client or server (roundtrip also as beside), everything "
        "else as single");
  c.log = required(r.text("log"), "log", "where to write the sample log");
  c.mode = r.choice("mode", kModes).value_or(RTM_PERIODIC);
  const bool one_shot = c.measurement == RTM_TIMER && c.mode == RTM_ONE_SHOT;
  const auto period = r.integer("period_ns", 1, kMaxTime);
  const auto timeout = r.integer("timeout_ns", 1, kMaxTime);
  c.period_ns = one_shot ? required(timeout, "timeout_ns", "a one-shot timer needs it")
                         : required(period, "period_ns", "the period of the releases");
  const auto samples = r.integer("samples", 1, kMaxCount);
  c.samples = c.role == RTM_ROLE_SERVER ? 0 : required(samples, "samples", "how many releases to measure");
  c.warm_up = r.integer("warm_up", 0, kMaxCount).value_or(0);
  if (c.total() > kMaxTime / c.period_ns)
    throw Failure("samples", std::to_string(c.samples), "takes longer than a year at this period",
                  "measure fewer releases");
  c.overrun = r.choice("overrun", kOverruns);
  c.deadline_ns = r.integer("deadline_ns", 1, kMaxTime);
  const auto loss = r.integer("loss_timeout_ns", 1, kMaxTime);
  if ((c.is_exchange() || c.measurement == RTM_DISCOVERY) && c.role != RTM_ROLE_SERVER) {
    c.loss_timeout_ns = required(loss, "loss_timeout_ns", "when a message counts as lost");
    if (c.deadline_ns && c.loss_timeout_ns < *c.deadline_ns)
      throw Failure("loss_timeout_ns", std::to_string(c.loss_timeout_ns), "is shorter than the deadline",
                    "give a loss timeout of at least deadline_ns");
  }
  c.drive = r.choice("drive", kDrives);
  c.sleep_offset_ns = r.integer("sleep_offset_ns", 0, c.period_ns - 1);
  if (c.sleep_offset_ns && (c.measurement != RTM_TIMER || c.drive != RTM_SLEEP_THEN_SPIN_SOME))
    throw Failure("sleep_offset_ns", std::to_string(*c.sleep_offset_ns),
                  "means nothing: no sleep follows a timer's tick here",
                  "leave it out, or measure a timer with drive sleep_then_spin_some");
  c.components = r.choice("components", kComponents);
  if (c.components && c.measurement != RTM_CYCLE)
    throw Failure("components", name_of(*c.components),
                  std::string("means nothing for ") + name_of(c.measurement),
                  "leave it out; it is for cycle");
  c.receive = r.choice("receive", kReceives);
  c.before = r.choice("before", kBefores).value_or(Before::none);
  c.in_flight = r.choice("in_flight", kInFlights).value_or(InFlight::one);
  const auto interface = r.choice("interface", kInterfaces);
  c.interface = interface.value_or(RTM_SERVICE);
  if (interface && c.measurement != RTM_REQUEST)
    throw Failure("interface", name_of(*interface),
                  std::string("means nothing for ") + name_of(c.measurement),
                  "leave it out; it is for request");
  c.payload_bytes = static_cast<std::uint32_t>(r.integer("payload_bytes", 8, 1 << 30).value_or(500));
  c.reliability = r.choice("reliability", kReliabilities).value_or(RTM_BEST_EFFORT);
  c.history_depth_asked = static_cast<std::int32_t>(r.integer("history_depth", 1, 1 << 20).value_or(-1));
  c.history_depth = c.history_depth_asked < 0 ? 1 : static_cast<std::uint32_t>(c.history_depth_asked);
  if (const Json* second = r.get("second_topic")) {
    Reader of(*second, "second_topic.");
    const auto place = required(of.choice("place", kSecondPlaces), "second_topic.place", "where it runs");
    const auto bytes = of.integer("payload_bytes", 8, 1 << 30).value_or(c.payload_bytes);
    c.second_topic = {place, static_cast<std::uint32_t>(bytes),
                      of.integer("period_ns", 1, kMaxTime).value_or(c.period_ns)};
    of.refuse_unknown();
  }
  c.beside = beside_from(r.get("beside"), c);
  c.chain = chain_from(r.get("chain"), c);
  c.discovery = discovery_from(r.get("discovery"), c);
  if (const Json* s = r.get("scheduling")) c.scheduling = scheduling_from_json(*s, "scheduling");
  c.apply_before_init = r.choice("apply", kApplies).value_or(true);
  c.timer_slack_ns = r.integer("timer_slack_ns", 1, 1'000'000'000);
  if (const Json* s = r.get("child_threads")) c.child_threads = scheduling_from_json(*s, "child_threads");
  c.cpus = r.cpus("cpus");
  c.child_cpus = r.cpus("child_cpus");
  c.lock_memory = r.flag("lock_memory");
  c.prefault_stack_bytes = r.integer("prefault_stack_bytes", 0, std::int64_t{1} << 40).value_or(0);
  c.prefault_heap_bytes = r.integer("prefault_heap_bytes", 0, std::int64_t{1} << 40).value_or(0);
  c.cpu_dma_latency = r.flag("cpu_dma_latency");
  c.options = r.texts("options");
  if (const Json* offered = r.get("offered"))
    for (const Json& key : offered->as_array()) c.offered.push_back(key.as_string());
  c.session = r.text("session").value_or(c.session);
  c.kernel_stamps = r.flag("kernel_stamps");
  if (c.kernel_stamps && c.measurement != RTM_ROUNDTRIP)
    throw Failure("kernel_stamps", "true", std::string("means nothing for ") + name_of(c.measurement),
                  "leave it out; it is for roundtrip");
  c.shared_clock = r.text("shared_clock");
  if (c.shared_clock && !c.has_two_ends())
    throw Failure("shared_clock", *c.shared_clock, std::string("means nothing for ") + name_of(c.measurement),
                  "leave it out; it is for roundtrip and request");
  c.connect_timeout_ns = r.integer("connect_timeout_ns", 1, kMaxTime).value_or(c.connect_timeout_ns);
  c.watch_stdin = r.flag("watch_stdin");
  c.break_on_late = r.flag("break_on_late");
  if (c.break_on_late && !c.deadline_ns)
    throw Failure("break_on_late", "true", "says nothing without a deadline",
                  "give deadline_ns, or leave it out");
  r.refuse_unknown();

  if (c.discovery && (c.child_threads || !c.child_cpus.empty() || !c.apply_before_init))
    throw Failure(!c.apply_before_init ? "apply"
                  : c.child_threads    ? "child_threads"
                                       : "child_cpus",
                  !c.apply_before_init ? "after_init"
                  : c.child_threads    ? to_string(*c.child_threads)
                                       : "",
                  "cannot be had in a discovery: the middleware's threads begin and end with each release",
                  "leave it out: they have what the process has");
  if (c.scheduling.policy == Scheduling::Policy::deadline && c.apply_before_init)
    throw Failure("scheduling", to_string(c.scheduling), "SCHED_DEADLINE is not inherited by new threads",
                  "use \"apply\": \"after_init\"");
  if (c.timer_slack_ns && c.apply_before_init && c.scheduling.policy != Scheduling::Policy::other)
    throw Failure(
        "timer_slack_ns", std::to_string(*c.timer_slack_ns),
        "means nothing: threads of a real-time policy have no timer slack",
        "leave it out, use the policy other, or \"apply\": \"after_init\" for the middleware's threads");
  const bool spins = c.has_two_ends() && c.receive == RTM_RECEIVE_SPIN;
  if (c.scheduling.policy == Scheduling::Policy::deadline && c.role == RTM_ROLE_CLIENT &&
      (c.in_flight == InFlight::open || spins))
    throw Failure(spins ? "receive" : "in_flight", spins ? "spin" : "open",
                  "needs a second thread, which SCHED_DEADLINE is not inherited by",
                  spins ? "use spin_once, or another policy" : "use one, or another policy");
  return c;
}

Config read_config(const std::string& path) {
  const auto text = read_text(path);
  if (!text)
    throw Failure("--config", path, "cannot be read", "give the path of a JSON file (spec/probe.md)");
  return config_from_json(Json::parse(*text, path));
}

}  // namespace rtmeter
