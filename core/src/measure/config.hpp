// The probe config (spec/probe.md), parsed and checked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "json/json.hpp"
#include "rtmeter/adapter.h"
#include "system/scheduling.hpp"

namespace rtmeter {

enum class Before { none, init, init_and_node };
enum class InFlight { one, open };
enum class SecondPlace { same_node, same_process };

// Traffic beside a round trip (spec/probe.md).
struct SecondTopicConfig {
  SecondPlace place = SecondPlace::same_node;
  std::uint32_t payload_bytes = 0;
  std::int64_t period_ns = 0;
};

// A stage of a chain that this process runs (spec/probe.md).
struct ChainStage {
  struct Input {
    std::string stage;
    std::uint32_t ways;  // that lead to it: the samples that its messages carry
  };
  std::string name;
  bool fusion = false;            // waits for all inputs
  std::int64_t period_ns = 0;     // of its releases; 0: passes on what comes
  std::int64_t offset_ns = 0;     // of them, after the chain's first
  std::int64_t samples = 0;       // source: how many it releases
  bool re_stamps = false;         // plants what is to be found
  std::vector<Input> inputs;      // none: a source
  std::uint32_t ways() const {
    std::uint32_t sum = 0;
    for (const Input& input : inputs) sum += input.ways;
    return inputs.empty() ? 1 : sum;
  }
};

struct ChainConfig {
  std::vector<ChainStage> stages;
  std::int64_t drain_ns =
      0;  // from the last release of a source on: how long what is under way is waited for
};

// A discovery's participants, and which of them this process is (spec/probe.md).
struct DiscoveryConfig {
  int participants = 2;
  std::optional<int> participant;  // none: all of them, on a scripted clock
  bool cold = true;                // all start at each release; else only the last, the others are there
};

// Who is beside a round trip's two ends (spec/probe.md), each in a process of its own but on a scripted
// clock.
enum class BesideAs { subscriber, publisher, node };
struct BesideConfig {
  int subscribers = 1;         // of topic ping, the server's among them
  int publishers = 1;          // of topic ping, the client among them
  int background_nodes = 0;    // that do nothing
  std::optional<BesideAs> as;  // what this process is; none: client or server
  int number = 0;              // of its kind: the server is subscriber 1, the client publisher 1
};

struct Config {
  rtm_measurement measurement = RTM_WAKEUP;
  rtm_role role = RTM_ROLE_SINGLE;
  std::string log;
  std::int64_t period_ns = 0;  // one_shot: the timeout
  std::int64_t samples = 0;
  std::int64_t warm_up = 0;
  std::optional<rtm_overrun> overrun;
  std::optional<std::int64_t> deadline_ns;
  std::int64_t loss_timeout_ns = 0;
  rtm_timer_mode mode = RTM_PERIODIC;
  std::optional<rtm_drive> drive;
  std::optional<std::int64_t> sleep_offset_ns;  // sleep_then_spin_some beside a timer
  std::optional<rtm_components> components;     // cycle
  std::optional<rtm_receive> receive;
  Before before = Before::none;
  InFlight in_flight = InFlight::one;
  std::uint32_t payload_bytes = 500;
  rtm_reliability reliability = RTM_BEST_EFFORT;
  std::uint32_t history_depth = 1;
  std::int32_t history_depth_asked = -1;  // -1: not given
  std::optional<SecondTopicConfig> second_topic;
  std::optional<BesideConfig> beside;
  rtm_interface interface = RTM_SERVICE;  // request
  std::optional<ChainConfig> chain;
  std::optional<DiscoveryConfig> discovery;
  Scheduling scheduling;
  bool apply_before_init = true;
  std::optional<std::int64_t> timer_slack_ns;
  std::optional<Scheduling> child_threads;
  std::vector<int> cpus, child_cpus;  // empty: leave
  bool lock_memory = false;
  std::int64_t prefault_stack_bytes = 0, prefault_heap_bytes = 0;
  bool cpu_dma_latency = false;
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<std::string> offered;  // those of them that nobody asked for: they may mean nothing in the run
  std::string session = "rtmeter";
  std::int64_t connect_timeout_ns = 10'000'000'000;
  bool watch_stdin = false;
  std::optional<std::string> shared_clock;  // tai, or a PTP hardware clock's device
  bool kernel_stamps = false;
  bool break_on_late = false;  // stop the kernel's trace and end at the first late release

  Json as_read;  // the object itself, for the log's header

  std::int64_t total() const { return warm_up + samples; }
  // A client asks and a server answers, of another process unless the adapter's is inline.
  bool has_two_ends() const { return measurement == RTM_ROUNDTRIP || measurement == RTM_REQUEST; }
  // Ends when it is asked to, and releases nothing.
  bool only_serves() const { return role == RTM_ROLE_SERVER || role == RTM_ROLE_BESIDE; }
  // Every release is answered.
  bool is_exchange() const { return has_two_ends() || measurement == RTM_CYCLE; }
  // Its messages are received by one wait at a time.
  bool only_waits() const { return measurement == RTM_CHAIN || measurement == RTM_DISCOVERY; }
  // How long it may have nothing to record once it has begun: a one-shot timer is lost after ten timeouts.
  std::int64_t quiet_ns() const {
    if (!chain) return loss_timeout_ns + 11 * period_ns;
    std::int64_t longest_ns = 0;
    for (const ChainStage& stage : chain->stages)
      longest_ns = std::max(longest_ns, stage.offset_ns + 11 * stage.period_ns);
    return longest_ns + chain->drain_ns;
  }
  // How far the sleeps lie behind the timer's ticks: half a period, so that they find them ready.
  std::int64_t sleep_offset() const { return sleep_offset_ns.value_or(period_ns / 2); }
};

// Throws Failure naming the key.
Config config_from_json(const Json& json);
Config read_config(const std::string& path);

// Names used in configs, logs and descriptions alike.
const char* name_of(rtm_measurement m);
const char* name_of(rtm_role r);
const char* name_of(rtm_overrun o);
const char* name_of(rtm_drive d);
const char* name_of(rtm_components c);
const char* name_of(rtm_receive r);
const char* name_of(rtm_interface i);
const char* name_of(rtm_timer_mode m);
const char* name_of(SecondPlace p);
const char* name_of(BesideAs a);

}  // namespace rtmeter
