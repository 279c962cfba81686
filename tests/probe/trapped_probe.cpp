// Linked into a probe, this watches its measured path. The linker (--wrap, CMakeLists.txt) leads three
// calls here: the probe's start, and the opening and the closing of the measured window. A watched
// thread is the one that opens the window, and each that calls back while it is open. What was caught
// is told on standard error when the probe ends: {"threads", "opening": {…}, "core": {…}, "adapter": {…}},
// each side with {"allocations", "calls": {number: count}}; opening is what opening the window took.
//
// RTMETER_TRAP_PLANT=allocation|call|fault plants one in each callback, on the core's side: the proof
// that the traps catch what they are for.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>

#include "json/json.hpp"
#include "rtmeter/adapter.h"
#include "system/usage.hpp"
#include "traps.hpp"

namespace {

using namespace rtmeter::traps;

const rtm_adapter* inner = nullptr;
rtm_adapter outer;

enum class Plant { nothing, allocation, call, fault } plant = Plant::nothing;
void* const kPage = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

Plant planted() {
  const char* what = std::getenv("RTMETER_TRAP_PLANT");
  if (what == nullptr) return Plant::nothing;
  if (std::strcmp(what, "allocation") == 0) return Plant::allocation;
  return std::strcmp(what, "call") == 0 ? Plant::call : Plant::fault;
}

void violate() noexcept {
  if (plant == Plant::allocation) {
    void* volatile block = std::malloc(1);
    std::free(block);
  }
  if (plant == Plant::call) syscall(SYS_getppid);
  if (plant == Plant::fault) {
    munlock(kPage, 4096);
    madvise(kPage, 4096, MADV_DONTNEED);
    *static_cast<volatile char*>(kPage) = 1;
  }
}

// On entry of a callback.
void hook() noexcept {
  if (!window_is_open()) return;
  if (!is_watched() && set_trap()) watch_thread();
  violate();
}

template <typename Function>
struct Hooked {
  Function function;
  void* user;
};
// Addresses are handed out as `user`.
std::deque<Hooked<rtm_on_message>> on_messages;
std::deque<Hooked<rtm_on_fire>> on_fires;

template <typename Function, typename Argument>
void call_back(void* user, const Argument* argument) {
  const Crossing to_core(Side::core);
  hook();
  const auto* hooked = static_cast<Hooked<Function>*>(user);
  hooked->function(hooked->user, argument);
}

int create_subscriber(void* node, const char* topic, rtm_on_message on_message, void* user, void** subscriber,
                      rtm_error* error) {
  on_messages.push_back({on_message, user});
  return inner->create_subscriber(node, topic, &call_back<rtm_on_message, rtm_message>, &on_messages.back(),
                                  subscriber, error);
}

int create_timer(void* node, const rtm_timer_spec* spec, void** timer, rtm_timer_traits* traits,
                 rtm_error* error) {
  on_fires.push_back({spec->on_fire, spec->user});
  rtm_timer_spec hooked = *spec;
  hooked.on_fire = &call_back<rtm_on_fire, rtm_fire>;
  hooked.user = &on_fires.back();
  return inner->create_timer(node, &hooked, timer, traits, error);
}

// The adapter's side of the measured path. spin() and wait() are left by callbacks, to the core's side.
template <auto Member, typename... Arguments>
auto in_adapter(Arguments... arguments) {
  const Crossing to_adapter(Side::adapter);
  return (inner->*Member)(arguments...);
}

const rtm_adapter* hooked(const rtm_adapter* adapter) {
  inner = adapter;
  outer = *adapter;
  outer.create_subscriber = create_subscriber;
  outer.create_timer = create_timer;
  outer.arm = in_adapter<&rtm_adapter::arm, void*, std::int64_t>;
  outer.publish = in_adapter<&rtm_adapter::publish, void*, const rtm_message*>;
  outer.spin = in_adapter<&rtm_adapter::spin, void*, std::int64_t>;
  outer.wait = in_adapter<&rtm_adapter::wait, void*, std::int64_t>;
  outer.spin_some = in_adapter<&rtm_adapter::spin_some, void*>;
  outer.interrupt = in_adapter<&rtm_adapter::interrupt, void*>;
  return &outer;
}

rtmeter::Json opening;

rtmeter::Json report(Side side) {
  const auto s = static_cast<std::size_t>(side);
  rtmeter::Json calls = rtmeter::Json::object();
  for (std::size_t number = 0; number < kMostCalls; ++number) {
    const std::uint64_t count = counts().calls[s][number].load();
    if (count > 0) calls[std::to_string(number)] = count;
  }
  return rtmeter::Json(
      rtmeter::Json::Object{{"allocations", counts().allocations[s].load()}, {"calls", calls}});
}

}  // namespace

// The linker's names.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

int __real_rtm_probe_main(int argc, char** argv, const rtm_adapter* adapter);
int __wrap_rtm_probe_main(int argc, char** argv, const rtm_adapter* adapter) {
  plant = planted();
  const int exit_code = __real_rtm_probe_main(argc, argv, hooked(adapter));
  const rtmeter::Json all(rtmeter::Json::Object{{"threads", counts().threads.load()},
                                                {"opening", opening},
                                                {"core", report(Side::core)},
                                                {"adapter", report(Side::adapter)}});
  std::cerr << all.dump() << std::endl;
  return exit_code;
}

// rtmeter::UsageWindow::open() and close(), by their names in the C++ ABI.
void __real__ZN7rtmeter11UsageWindow4openEv(rtmeter::UsageWindow* window);
void __wrap__ZN7rtmeter11UsageWindow4openEv(rtmeter::UsageWindow* window) {
  if (set_trap()) watch_thread();
  open_window();
  __real__ZN7rtmeter11UsageWindow4openEv(window);
  close_window();
  opening = report(Side::core);
  forget_calls();
  open_window();
}

void __real__ZN7rtmeter11UsageWindow5closeEv(rtmeter::UsageWindow* window);
void __wrap__ZN7rtmeter11UsageWindow5closeEv(rtmeter::UsageWindow* window) {
  close_window();
  __real__ZN7rtmeter11UsageWindow5closeEv(window);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
