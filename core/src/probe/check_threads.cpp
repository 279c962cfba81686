#include "probe/check_threads.hpp"

#include <algorithm>
#include <string>

#include "errors.hpp"
#include "system/audit.hpp"

namespace rtmeter {
namespace {

bool has_option(const Config& config, const char* name) {
  return std::any_of(config.options.begin(), config.options.end(),
                     [&](const auto& option) { return option.first == name; });
}

}  // namespace

void check_threads(const std::vector<ThreadFacts>& threads, const Config& config) {
  for (const ThreadFacts& t : threads) {
    if (t.scheduling == config.scheduling) continue;
    if (t.role == "measured")
      throw Failure("scheduling", to_string(config.scheduling),
                    "thread " + t.name + " runs as " + to_string(t.scheduling),
                    "the middleware changes its caller's policy: use \"apply\": \"after_init\"");
    const bool stays_normal = !config.apply_before_init && t.scheduling == Scheduling{};
    const bool asked = config.child_threads ? t.scheduling == *config.child_threads
                                            : stays_normal || has_option(config, "threads");
    if (t.stamps && t.role == "middleware" && !asked)
      throw Failure(
          "scheduling", to_string(config.scheduling),
          "thread " + t.name + " of the middleware's, which stamps, runs as " + to_string(t.scheduling),
          "use \"apply\": \"before_init\", give child_threads, or choose another receive");
  }
}

}  // namespace rtmeter
