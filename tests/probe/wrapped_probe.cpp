// A template's adapter (WRAPPED, a file) between the core and faults or a trace: what check-adapter must
// catch, and which methods are called when. RTMETER_TEST_FAULT names the fault, RTMETER_TEST_SHARED a file
// that one needs. RTMETER_TEST_TRACE names a file to which the methods are written in the order in which they
// are first called, a line each: method, thread; a server's to a
// file with .server behind its name.
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rtmeter/adapter.hpp"
#undef RTMETER_ADAPTER_MAIN
#define RTMETER_ADAPTER_MAIN(AdapterClass) using Wrapped = AdapterClass;
#include WRAPPED

namespace {

rtm_adapter inner() { return *rtmeter::adapter_table<Wrapped>(); }

bool is(const char* fault) {
  const char* planted = std::getenv("RTMETER_TEST_FAULT");
  return planted != nullptr && std::strcmp(planted, fault) == 0;
}

// The measured thread (main), or the name of another.
std::string thread_name() {
  if (gettid() == getpid()) return "measured";
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return name;
}

// A server's calls are written apart.
std::string& suffix() {
  static std::string text;
  return text;
}

void note(const char* method) {
  static std::mutex mutex;
  static std::vector<std::pair<std::string, std::string>> seen;
  static const char* path = std::getenv("RTMETER_TEST_TRACE");
  if (path == nullptr) return;
  const std::pair<std::string, std::string> call{method, thread_name()};
  const std::lock_guard<std::mutex> lock(mutex);
  for (const auto& known : seen)
    if (known == call) return;
  seen.push_back(call);
  std::ofstream(path + suffix(), std::ios::app) << call.first << " " << call.second << "\n";
}

// What the first that asks gives, for all that ask.
std::string shared(const char* value) {
  const char* path = std::getenv("RTMETER_TEST_SHARED");
  std::string first;
  if (std::getline(std::ifstream(path), first)) return first;
  std::ofstream(path) << value;
  return value;
}

struct Sink : rtm_sink {
  rtm_sink* to;
  static void put_into(rtm_sink* sink, const char* key, const char* value) {
    if (is("no_version") && std::strcmp(key, "version") == 0) return;
    auto* to = static_cast<Sink*>(sink)->to;
    to->put(to, key,
            is("shares_topics") && std::strcmp(key, "endpoint") == 0 ? shared(value).c_str() : value);
  }
};

void describe(const void* self, rtm_sink* to) {
  if (self != nullptr) note("describe");
  Sink sink{};
  sink.put = &Sink::put_into;
  sink.to = to;
  inner().describe(self, &sink);
  if (self == nullptr && is("lies_about_drives")) to->put(to, "drives.cycle", "spin");
}

void idle() { usleep(1'000'000'000); }

int start(const rtm_run* run, void** self, rtm_error* error) {
  if (run->role == RTM_ROLE_SERVER) suffix() = ".server";
  note("start");
  static rtm_run altered;
  altered = *run;
  if (is("shares_topics")) altered.session = "the same for all";
  if (is("takes_any_option")) {
    for (std::size_t i = 0; i < run->option_count; ++i) rtm_option_or(run, run->options[i].key, "");
    if (run->role == RTM_ROLE_SINGLE) altered.option_count = 0;
  }
  if (is("undeclared_thread")) std::thread(idle).detach();
  return inner().start(&altered, self, error);
}

void stop(void* self) {
  note("stop");
  if (is("hangs_at_the_end"))
    for (;;) pause();
  inner().stop(self);
}

int create_node(void* self, const char* name, void** node, rtm_error* error) {
  note("create_node");
  return inner().create_node(self, name, node, error);
}
rtm_timer_spec timer_of_core;

// A millisecond later than the middleware had it due.
void fire_with_another_time(void* user, const rtm_fire* fire) {
  const rtm_fire altered{fire->reported_expected_ns + 1'000'000, fire->reported_actual_ns};
  timer_of_core.on_fire(user, &altered);
}

int create_timer(void* node, const rtm_timer_spec* spec, void** timer, rtm_timer_traits* traits,
                 rtm_error* error) {
  note("create_timer");
  timer_of_core = *spec;
  rtm_timer_spec altered = *spec;
  if (is("reports_another_time")) altered.on_fire = &fire_with_another_time;
  return inner().create_timer(node, &altered, timer, traits, error);
}
int arm(void* timer, int64_t now_ns) {
  note("arm");
  return inner().arm(timer, now_ns);
}
int create_publisher(void* node, const char* topic, void** publisher, rtm_error* error) {
  note("create_publisher");
  return inner().create_publisher(node, topic, publisher, error);
}
rtm_on_message message_of_core;
void* user_of_core;
std::atomic<int> unanswered{0};

void message_from_another_thread(void* user, const rtm_message* message) {
  unanswered = 0;
  if (!is("calls_back_elsewhere")) return message_of_core(user, message);
  std::thread([&] { message_of_core(user, message); }).join();
}

int create_subscriber(void* node, const char* topic, rtm_on_message on_message, void* user, void** subscriber,
                      rtm_error* error) {
  note("create_subscriber");
  message_of_core = on_message;
  user_of_core = user;
  return inner().create_subscriber(node, topic, &message_from_another_thread, user, subscriber, error);
}

int publish(void* publisher, const rtm_message* message) {
  note("publish");
  if (message->sequence == RTM_SEQUENCE_HELLO) return inner().publish(publisher, message);
  const bool asks = suffix().empty();
  if (asks && is("answers_itself")) return message_of_core(user_of_core, message), 0;
  if (asks && is("waits_for_answers"))
    for (++unanswered; unanswered > 3;) usleep(1000);
  if (is("loses_all")) return 0;
  if (is("refuses") && message->sequence % 8 == 0) return -1;
  std::vector<std::uint8_t> bytes(message->data, message->data + message->bytes);
  if (is("wrong_echo")) bytes.back() = static_cast<std::uint8_t>(bytes.back() + 1);
  const rtm_message altered{message->sequence, bytes.data(), message->bytes};
  if (is("twice")) inner().publish(publisher, &altered);
  return inner().publish(publisher, &altered);
}

bool waits() { return is("hangs") || is("ignores_interrupt"); }

int spin(void* self, int64_t timeout_ns) {
  note("spin");
  if (is("spin_does_not_block")) return inner().spin_some(self);
  int result = inner().spin(self, timeout_ns);
  while (waits()) result = inner().wait(self, timeout_ns);
  return result;
}
int wait(void* self, int64_t timeout_ns) {
  note("wait");
  if (is("ignores_timeout")) timeout_ns = INT64_MAX;
  if (is("wait_does_not_block")) timeout_ns = 0;
  return inner().wait(self, timeout_ns);
}
int spin_some(void* self) {
  note("spin_some");
  return inner().spin_some(self);
}
void interrupt(void* self) {
  note("interrupt");
  if (is("ignores_interrupt")) return;
  inner().interrupt(self);
}

int create_client(void* node, const char* service, rtm_on_reply on_reply, void* user, void** client,
                  rtm_error* error) {
  note("create_client");
  return inner().create_client(node, service, on_reply, user, client, error);
}
int create_server(void* node, const char* service, rtm_on_message on_request, void* user, void** server,
                  rtm_error* error) {
  note("create_server");
  return inner().create_server(node, service, on_request, user, server, error);
}
int call(void* client, const rtm_message* request) {
  note("call");
  return inner().call(client, request);
}
int reply(void* server, rtm_reply what, const rtm_message* message) {
  note("reply");
  if (message->sequence == RTM_SEQUENCE_HELLO || !is("wrong_reply"))
    return inner().reply(server, what, message);
  std::vector<std::uint8_t> bytes(message->data, message->data + message->bytes);
  bytes.back() = static_cast<std::uint8_t>(bytes.back() + 1);
  const rtm_message altered{message->sequence, bytes.data(), message->bytes};
  return inner().reply(server, what, &altered);
}

}  // namespace

int main(int argc, char** argv) {
  const rtm_adapter from = inner();
  // What the template lacks this lacks too.
  const rtm_adapter table = {RTM_ADAPTER_ABI,
                             &describe,
                             &start,
                             &stop,
                             &create_node,
                             from.create_timer != nullptr ? &create_timer : nullptr,
                             from.arm != nullptr && !is("no_arm") ? &arm : nullptr,
                             &create_publisher,
                             &create_subscriber,
                             &publish,
                             is("no_spin") ? nullptr : &spin,
                             &wait,
                             &spin_some,
                             &interrupt,
                             from.create_client != nullptr ? &create_client : nullptr,
                             from.create_server != nullptr ? &create_server : nullptr,
                             from.call != nullptr ? &call : nullptr,
                             from.reply != nullptr && !is("no_reply") ? &reply : nullptr,
                             from.watch,
                             from.tell_stamps};
  return rtm_probe_main(argc, argv, &table);
}
