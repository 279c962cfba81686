#include "probe/effective.hpp"

#include <unistd.h>

namespace rtmeter {
namespace {

Json named(const char* name) { return name == nullptr ? Json() : Json(name); }

}  // namespace

Json effective_settings(const Bench& bench, const std::vector<ThreadFacts>& threads,
                        bool holds_cpu_dma_latency, const Measurement* measurement) {
  const Config& config = bench.config;
  Json e = Json::object();
  for (const ThreadFacts& t : threads) {
    if (t.tid != static_cast<int>(getpid())) continue;
    e["scheduling"] = to_json(t.scheduling);
    Json cpus = Json::array();
    for (const int cpu : t.cpus) cpus.push(cpu);
    e["cpus"] = cpus;
    e["timer_slack_ns"] = t.timer_slack_ns ? Json(*t.timer_slack_ns) : Json();
  }
  e["apply"] = config.apply_before_init ? "before_init" : "after_init";
  e["memory_locked"] = config.lock_memory;
  e["prefault_stack_bytes"] = config.prefault_stack_bytes;
  e["prefault_heap_bytes"] = config.prefault_heap_bytes;
  e["malloc_arenas"] = config.prefault_heap_bytes > 0 ? Json(1) : Json();
  e["cpu_dma_latency"] = holds_cpu_dma_latency ? Json(0) : Json();
  const bool waits = config.only_waits();
  e["drive"] = config.has_two_ends() || waits ? Json() : Json(name_of(bench.drive));
  e["receive"] = config.is_exchange() || waits ? Json(name_of(bench.receive)) : Json();
  if (config.measurement == RTM_REQUEST) e["interface"] = name_of(config.interface);
  e["deadline_ns"] = config.deadline_ns ? Json(*config.deadline_ns) : Json();
  e["loss_timeout_ns"] = config.loss_timeout_ns > 0 ? Json(config.loss_timeout_ns) : Json();
  if (config.measurement == RTM_TIMER && bench.drive == RTM_SLEEP_THEN_SPIN_SOME)
    e["sleep_offset_ns"] = config.sleep_offset();
  if (measurement != nullptr) {
    e["overrun"] = *measurement->facts().find("overrun");
    e["grid"] = named(measurement->grid_from());
    if (config.measurement == RTM_CYCLE) e["components"] = named(measurement->components());
  }
  return e;
}

}  // namespace rtmeter
