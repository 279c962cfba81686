#include "measure/session.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "errors.hpp"

namespace rtmeter {
namespace {

// Options that an adapter asked for; one adapter runs in a process.
std::set<std::string>& asked_options() {
  static std::set<std::string> asked;
  return asked;
}

void put_path(Json& object, const std::string& path, const std::string& value, bool list) {
  const auto dot = path.find('.');
  if (dot != std::string::npos) {
    Json& inner = object[path.substr(0, dot)];
    if (!inner.is_object()) inner = Json::object();
    put_path(inner, path.substr(dot + 1), value, list);
    return;
  }
  Json& slot = object[path];
  if (slot.is_null() && list) {
    slot = Json::array().push(value);
  } else if (slot.is_null()) {
    slot = value;
  } else if (slot.is_array()) {
    slot.push(value);
  } else {
    slot = Json::array().push(slot).push(value);
  }
}

// These, and what these begin, are lists even with one entry.
bool is_list(const std::string& key) {
  const auto begins = [&](const char* start) { return key.rfind(start, 0) == 0; };
  return key == "measures" || key == "second_topic" || key == "beside" || key == "background" ||
         key == "components" || key == "brings" || key == "matches" || key == "chosen" ||
         key == "interfaces" || key == "kernel_stamps" || begins("drives.") || begins("receives.") ||
         begins("same_host.") || begins("inline.") || begins("poll.");
}

struct JsonSink : rtm_sink {
  Json json = Json::object();
  static void put_into(rtm_sink* sink, const char* key, const char* value) {
    put_path(static_cast<JsonSink*>(sink)->json, key, value, is_list(key));
  }
};

std::string measure_name(const Config& c) {
  std::string name = name_of(c.measurement);
  if (c.measurement == RTM_TIMER) name += std::string(".") + name_of(c.mode);
  return name;
}

bool was_read(const std::string& option) { return asked_options().count(option) != 0; }

std::string joined(const Json* list) {
  std::string text;
  if (list != nullptr && list->is_array())
    for (const Json& item : list->as_array()) text += (text.empty() ? "" : ", ") + item.as_string();
  return text.empty() ? "nothing" : text;
}

bool contains(const Json* list, const std::string& wanted) {
  if (list == nullptr || !list->is_array()) return false;
  const auto& items = list->as_array();
  return std::any_of(items.begin(), items.end(), [&](const Json& i) { return i.as_string() == wanted; });
}

}  // namespace

Json describe(const rtm_adapter& adapter, const void* self) {
  JsonSink sink;
  sink.json["rtmeter"] = RTMETER_VERSION;
  sink.put = &JsonSink::put_into;
  adapter.describe(self, &sink);
  if (const Json* failed = sink.json.find("describe_failed"); failed != nullptr) {
    const auto told = [&](const char* key, const char* otherwise) {
      const Json* text = failed->find(key);
      return text == nullptr ? std::string(otherwise) : text->as_string();
    };
    throw Failure(told("field", "adapter"), told("value", "describe"), told("message", ""),
                  told("remedy", "see the middleware's messages in the cell's probe.stderr"));
  }
  return sink.json;
}

rtm_drive choose_drive(const Json& description, const Config& config) {
  const std::string measure = measure_name(config);
  if (config.has_two_ends() && config.drive)
    throw Failure("drive", name_of(*config.drive),
                  "has no meaning in a " + measure + ": its releases are slept for",
                  "leave it out; receive says how replies are received (spin, spin_once, listener, poll)");
  const Json* measures = description.find("measures");
  if (!contains(measures, measure))
    throw Failure("measurement", measure, "this adapter does not measure it; it measures " + joined(measures),
                  "choose another adapter or measurement (`rtmeter adapters`)");
  const Json* drives = description.find("drives");
  const Json* list = drives == nullptr ? nullptr : drives->find(name_of(config.measurement));
  if (list == nullptr) {
    if (config.drive)
      throw Failure("drive", name_of(*config.drive), std::string("has no meaning in ") + measure,
                    "leave it out");
    return config.measurement == RTM_CYCLE ? RTM_SLEEP_THEN_SPIN_SOME : RTM_SPIN;
  }
  const auto known = {RTM_SPIN, RTM_SLEEP_THEN_SPIN_SOME, RTM_POLL};
  for (const rtm_drive drive : known)
    if (config.drive ? drive == *config.drive && contains(list, name_of(drive))
                     : list->as_array().front().as_string() == name_of(drive))
      return drive;
  throw Failure("drive", config.drive ? name_of(*config.drive) : "",
                "this adapter drives " + measure + " by " + joined(list), "choose one of these");
}

void check_components(const Json& description, const Config& config) {
  if (!config.components) return;
  const Json* list = description.find("components");
  if (contains(list, name_of(*config.components))) return;
  throw Failure("components", name_of(*config.components),
                "this adapter runs the components of a cycle by " + joined(list),
                list == nullptr ? "leave it out: the adapter decides" : "choose one of these");
}

void check_interface(const Json& description, const Config& config) {
  if (config.measurement != RTM_REQUEST) return;
  const Json* list = description.find("interfaces");
  if (contains(list, name_of(config.interface))) return;
  throw Failure("interface", name_of(config.interface),
                "the requests of this adapter go over " + joined(list),
                list == nullptr ? "choose an adapter that names its interfaces (`rtmeter adapters`)"
                                : "choose one of these");
}

namespace {

// What can be, whatever the adapter: a sleeping thread does not spin, and one that spins does nothing else.
bool fits(rtm_receive receive, const Config& config, rtm_drive drive) {
  if (config.only_waits()) return receive == RTM_RECEIVE_SPIN_ONCE;
  if (receive == RTM_RECEIVE_CALL)
    return config.measurement == RTM_REQUEST && config.role == RTM_ROLE_CLIENT &&
           config.in_flight == InFlight::one;
  if (config.has_two_ends()) {
    const bool deadline = config.scheduling.policy == Scheduling::Policy::deadline;
    return receive != RTM_RECEIVE_SPIN || !deadline || config.only_serves();
  }
  switch (drive) {
    case RTM_SPIN:
      return receive == RTM_RECEIVE_SPIN || receive == RTM_RECEIVE_LISTENER;
    case RTM_SLEEP_THEN_SPIN_SOME:
      return receive != RTM_RECEIVE_SPIN;
    case RTM_POLL:
      return receive == RTM_RECEIVE_POLL;
  }
  return false;
}

constexpr rtm_receive kWays[] = {RTM_RECEIVE_SPIN, RTM_RECEIVE_SPIN_ONCE, RTM_RECEIVE_LISTENER,
                                 RTM_RECEIVE_POLL, RTM_RECEIVE_CALL};

// The option that was given a value with which nothing but polling is possible; the end if none was.
auto polling_option(const Json& description, const Config& config) {
  const Json* options = description.find("poll");
  return std::find_if(config.options.begin(), config.options.end(), [&](const auto& option) {
    return options != nullptr && contains(options->find(option.first), option.second);
  });
}

// The adapter's ways, its default first. One that says nothing can spin, wait and poll, as the contract has
// it.
std::vector<rtm_receive> receives_of(const Json& description, const Config& config) {
  const Json* all = description.find("receives");
  const Json* list = all == nullptr ? nullptr : all->find(name_of(config.measurement));
  if (polling_option(description, config) != config.options.end()) return {RTM_RECEIVE_POLL};
  if (list == nullptr) return {RTM_RECEIVE_SPIN, RTM_RECEIVE_SPIN_ONCE, RTM_RECEIVE_POLL};
  std::vector<rtm_receive> ways;
  for (const Json& item : list->as_array())
    for (const rtm_receive way : kWays)
      if (item.as_string() == name_of(way)) ways.push_back(way);
  // A client that only calls says nothing of how its server receives.
  if (config.role == RTM_ROLE_SERVER && ways == std::vector<rtm_receive>{RTM_RECEIVE_CALL})
    return {RTM_RECEIVE_SPIN, RTM_RECEIVE_SPIN_ONCE, RTM_RECEIVE_POLL};
  return ways;
}

}  // namespace

rtm_receive choose_receive(const Json& description, const Config& config, rtm_drive drive) {
  const std::string measure = measure_name(config);
  const bool has_messages = config.is_exchange() || config.only_waits();
  // Only a client calls: beside one that blocks, a server receives in the adapter's first way.
  const bool asked =
      config.receive && (*config.receive != RTM_RECEIVE_CALL || config.role != RTM_ROLE_SERVER);
  if (!has_messages) {
    if (config.receive)
      throw Failure("receive", name_of(*config.receive), "has no meaning in " + measure, "leave it out");
    return RTM_RECEIVE_SPIN;
  }
  std::string possible;
  for (const rtm_receive way : receives_of(description, config)) {
    if (!fits(way, config, drive)) continue;
    if (!asked || *config.receive == way) return way;
    possible += (possible.empty() ? "" : ", ") + std::string(name_of(way));
  }
  const std::string driven =
      config.measurement == RTM_CYCLE ? std::string(" driven by ") + name_of(drive) : "";
  if (const auto polls = polling_option(description, config);
      possible.empty() && polls != config.options.end())
    throw Failure("options." + polls->first, polls->second,
                  "messages can only be polled for with it, which a " + measure + driven + " does not",
                  "choose another, or leave it out");
  if (possible.empty() && config.in_flight == InFlight::open &&
      receives_of(description, config) == std::vector<rtm_receive>{RTM_RECEIVE_CALL})
    throw Failure("in_flight", "open",
                  "a call that blocks, by which alone this adapter does a " + measure +
                      ", sends the next only when it has returned",
                  "leave it out");
  throw Failure(
      "receive", config.receive ? name_of(*config.receive) : "",
      "this adapter receives the messages of a " + measure + driven + " by " +
          (possible.empty() ? "nothing" : possible),
      config.measurement == RTM_CYCLE ? "choose one of these, or another drive" : "choose one of these");
}

Session::Session(const rtm_adapter& adapter, const Config& config, rtm_drive drive, rtm_receive receive)
    : adapter_(adapter), session_(config.session), offered_(config.offered) {
  if (adapter.abi != RTM_ADAPTER_ABI)
    throw Failure("adapter", std::to_string(adapter.abi), "was built for another version of the contract",
                  "rebuild the adapter against this core");
  for (const auto& [key, value] : config.options) options_.push_back({key.c_str(), value.c_str()});
  run_.measurement = config.measurement;
  run_.role = config.role;
  run_.drive = drive;
  run_.receive = receive;
  run_.timer_mode = config.mode;
  run_.period_ns = config.period_ns;
  run_.payload_bytes = config.payload_bytes;
  if (config.second_topic && config.second_topic->place == SecondPlace::same_node)
    run_.payload_bytes = std::max(run_.payload_bytes, config.second_topic->payload_bytes);
  run_.reliability = config.reliability;
  run_.history_depth = config.history_depth;
  run_.history_depth_asked = config.history_depth_asked;
  run_.session = session_.c_str();
  run_.interface = config.interface;
  run_.subscribers = config.beside ? config.beside->subscribers : 1;
  run_.publishers = config.beside ? config.beside->publishers : 1;
  run_.components_asked = config.components ? static_cast<std::int32_t>(*config.components) : -1;
  run_.overrun_asked = config.overrun ? static_cast<std::int32_t>(*config.overrun) : -1;
  run_.options = options_.data();
  run_.option_count = options_.size();
}

Session::~Session() { stop(); }

void Session::stop() noexcept {
  if (self_ != nullptr) adapter_.stop(std::exchange(self_, nullptr));
}

template <typename Call>
void Session::checked(Call&& call) {
  rtm_error error{};
  if (call(&error) == 0) return;
  throw Failure(error.field, error.value, error.message[0] != '\0' ? error.message : "failed without a word",
                error.remedy);
}

void Session::start() {
  checked([&](rtm_error* e) { return adapter_.start(&run_, &self_, e); });
}

void* Session::create_node(const std::string& name) {
  void* node = nullptr;
  checked([&](rtm_error* e) { return adapter_.create_node(self_, name.c_str(), &node, e); });
  return node;
}

void* Session::create_timer(void* node, const rtm_timer_spec& spec, rtm_timer_traits& traits) {
  void* timer = nullptr;
  checked([&](rtm_error* e) { return adapter_.create_timer(node, &spec, &timer, &traits, e); });
  return timer;
}

void* Session::create_publisher(void* node, const std::string& topic) {
  void* publisher = nullptr;
  checked([&](rtm_error* e) { return adapter_.create_publisher(node, topic.c_str(), &publisher, e); });
  return publisher;
}

void* Session::create_subscriber(void* node, const std::string& topic, rtm_on_message on_message,
                                 void* user) {
  void* subscriber = nullptr;
  checked([&](rtm_error* e) {
    return adapter_.create_subscriber(node, topic.c_str(), on_message, user, &subscriber, e);
  });
  return subscriber;
}

void* Session::create_client(void* node, const std::string& service, rtm_on_reply on_reply, void* user) {
  void* client = nullptr;
  checked([&](rtm_error* e) {
    return adapter_.create_client(node, service.c_str(), on_reply, user, &client, e);
  });
  return client;
}

void* Session::create_server(void* node, const std::string& service, rtm_on_message on_request, void* user) {
  void* server = nullptr;
  checked([&](rtm_error* e) {
    return adapter_.create_server(node, service.c_str(), on_request, user, &server, e);
  });
  return server;
}

void Session::watch(void* node, rtm_on_match on_match, void* user) {
  checked([&](rtm_error* e) { return adapter_.watch(node, on_match, user, e); });
}

void Session::tell_stamps(void* node, rtm_on_stamp on_stamp, void* user) {
  if (adapter_.tell_stamps == nullptr)
    throw Failure("kernel_stamps", "true", "this adapter tells of no stamps of the kernel's",
                  "leave it out, or choose one of which `rtmeter adapters` says that it does: posix");
  checked([&](rtm_error* e) { return adapter_.tell_stamps(node, on_stamp, user, e); });
}

std::string Session::exception() const {
  const Json known = describe();
  const Json* first = known.find("exception");
  return first == nullptr ? "" : " (the first that threw: " + first->as_string() + ")";
}

void Session::refuse_unread_options(const Json& description) const {
  const Json* known = description.find("option");
  std::string all;
  if (known != nullptr)
    for (const auto& [key, about] : known->as_object()) all += (all.empty() ? "" : ", ") + key;
  for (const auto& option : options_) {
    if (was_read(option.key) || only_offered(option.key)) continue;
    const std::string field = std::string("option ") + option.key;
    if (known != nullptr && known->find(option.key) != nullptr)
      throw Failure(field, option.value, "means nothing in this run",
                    "leave it out; it is " + known->find(option.key)->as_string());
    throw Failure(field, option.value, "this adapter has no such option",
                  all.empty() ? "leave it out: it has none" : "choose one of " + all);
  }
}

bool Session::only_offered(const std::string& option) const {
  return std::find(offered_.begin(), offered_.end(), option) != offered_.end();
}

Json Session::in_effect(const Json& config) const {
  const Json* given = config.find("options");
  if (given == nullptr || !given->is_object()) return config;
  Json::Object read;
  for (const auto& [key, value] : given->as_object())
    if (was_read(key) || !only_offered(key)) read.emplace_back(key, value);
  Json known = config;
  known["options"] = read;
  return known;
}

}  // namespace rtmeter

extern "C" {

const char* rtm_option_or(const rtm_run* run, const char* key, const char* otherwise) {
  rtmeter::asked_options().insert(key);
  for (std::size_t i = 0; i < run->option_count; ++i)
    if (std::strcmp(run->options[i].key, key) == 0) return run->options[i].value;
  return otherwise;
}

int rtm_fail(rtm_error* error, const char* field, const char* value, const char* message,
             const char* remedy) {
  const auto put = [](char* into, std::size_t size, const char* text) {
    std::strncpy(into, text == nullptr ? "" : text, size - 1);
    into[size - 1] = '\0';
  };
  put(error->field, sizeof error->field, field);
  put(error->value, sizeof error->value, value);
  put(error->message, sizeof error->message, message);
  put(error->remedy, sizeof error->remedy, remedy);
  return -1;
}

}  // extern "C"
