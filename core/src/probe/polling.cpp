#include "probe/polling.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

#include "errors.hpp"
#include "system/affinity.hpp"
#include "system/limits.hpp"
#include "system/scheduling.hpp"

namespace rtmeter {
namespace {

struct Waiting {
  const char* name;
  std::vector<int> cpus;
};

const std::string* option_of(const Config& config, const std::string& name) {
  for (const auto& [key, value] : config.options)
    if (key == name) return &value;
  return nullptr;
}

// The value that a run has of `key`: components, or an option's; by default the adapter's first.
std::string in_effect(const Json& description, const Config& config, const std::string& key) {
  if (key == "components") {
    if (config.components) return name_of(*config.components);
    const Json* list = description.find("components");
    return list == nullptr ? "" : list->as_array().front().as_string();
  }
  if (const std::string* asked = option_of(config, key)) return *asked;
  const Json* options = description.find("option");
  const Json* described = options == nullptr ? nullptr : options->find(key);
  const std::string text = described == nullptr ? "" : described->as_string();
  return text.substr(0, text.find_first_of("|:"));
}

// `background`: "cycle", or "cycle components=two_threads".
bool needs_background(const Json& description, const Config& config) {
  const Json* list = description.find("background");
  if (list == nullptr) return false;
  for (const Json& item : list->as_array()) {
    const std::string& declared = item.as_string();
    const std::size_t space = declared.find(' '), equals = declared.find('=');
    if (declared.substr(0, space) != name_of(config.measurement)) continue;
    if (space == std::string::npos) return true;
    const std::string key = declared.substr(space + 1, equals - space - 1);
    if (in_effect(description, config, key) == declared.substr(equals + 1)) return true;
  }
  return false;
}

// Of "fifo:80" or "rr:80"; 0 of anything else.
int real_time_priority(const std::string& threads) {
  const std::string policy = threads.substr(0, threads.find(':'));
  if (policy == threads || (policy != "fifo" && policy != "rr")) return 0;
  int priority = 0;
  const char* const end = threads.data() + threads.size();
  const auto [stop, error] = std::from_chars(threads.data() + policy.size() + 1, end, priority);
  return error == std::errc() && stop == end ? priority : 0;
}

// The middleware's threads come before the measured one; of some of them who knows.
bool is_background_above(const Config& config) {
  const int own = config.scheduling.priority;
  if (config.child_threads && config.child_threads->priority > own) return true;
  const std::string* threads = option_of(config, "threads");
  if (threads == nullptr) return false;
  return threads->find('=') != std::string::npos || real_time_priority(*threads) > own;
}

// The setting that makes it poll.
std::pair<std::string, std::string> cause_of(const Config& config) {
  if (!config.cpus.empty()) return {"cpus", cpu_list_text(config.cpus)};
  if (config.drive == RTM_POLL) return {"drive", name_of(RTM_POLL)};
  if (config.receive == RTM_RECEIVE_POLL) return {"receive", name_of(RTM_RECEIVE_POLL)};
  std::string all;
  for (const auto& [key, value] : config.options) all += (all.empty() ? "" : ", ") + key + "=" + value;
  return {"options", all};
}

}  // namespace

CpuShare cpu_share() {
  std::ifstream file("/proc/sys/kernel/sched_rt_runtime_us");
  std::string runtime_us;
  file >> runtime_us;
  return {get_affinity(0), runtime_us != "-1"};
}

void check_polling(const Json& description, const Config& config, rtm_drive drive, rtm_receive receive,
                   const CpuShare& share) {
  const auto policy = config.scheduling.policy;
  if (policy != Scheduling::Policy::fifo && policy != Scheduling::Policy::rr) return;
  if (drive != RTM_POLL && receive != RTM_RECEIVE_POLL) return;
  const std::vector<int>& cpus = config.cpus.empty() ? share.allowed : config.cpus;
  std::vector<Waiting> others;
  if (config.role == RTM_ROLE_CLIENT && config.in_flight == InFlight::open)
    others.push_back({"client's sender", cpus});
  if (needs_background(description, config) && !is_background_above(config))
    others.push_back({"threads of the middleware", config.child_cpus.empty() ? cpus : config.child_cpus});
  if (!share.throttled) others.push_back({"rtmeter", share.allowed});
  const auto leaves_one = [&](int kept) {
    return std::all_of(others.begin(), others.end(), [&](const Waiting& other) {
      return std::any_of(other.cpus.begin(), other.cpus.end(), [&](int cpu) { return cpu != kept; });
    });
  };
  if (std::any_of(cpus.begin(), cpus.end(), leaves_one)) return;
  std::string names;
  for (const Waiting& other : others) names += (names.empty() ? "" : ", ") + std::string(other.name);
  const auto [field, value] = cause_of(config);
  throw Failure(field, value,
                "has no CPU for the thread that polls at " + to_string(config.scheduling) +
                    " and one for what else must run (" + names + "): it may run on CPU " +
                    cpu_list_text(cpus) + " only, and one that polls leaves it to nobody",
                "give them 2 CPUs (cpus, child_cpus), or let it wait instead of poll, or choose "
                "scheduling other");
}

}  // namespace rtmeter
