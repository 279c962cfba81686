// The C ABI: exceptions end here.
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "errors.hpp"
#include "loop.hpp"
#include "rtmeter/loop.h"

struct rtm_loop {
  rtmeter::Loop loop;
};

namespace {

// The loops that are open in this process. Never destroyed: one at namespace scope is closed after that.
struct Open {
  std::mutex mutex;
  std::vector<rtm_loop*> loops;
};
Open& all() {
  static Open& open = *new Open;
  return open;
}

// A program that ends without closing: what was stamped is written. The loops stay, as threads may go on.
void end_all() {
  const std::lock_guard lock(all().mutex);
  for (rtm_loop* one : all().loops) {
    try {
      if (!one->loop.inherited()) one->loop.end(one->loop.now_ns());
    } catch (const std::exception&) {  // nobody is left to be told; the log shows it
    }
  }
}

void watch_process() {
  static std::once_flag once;
  std::call_once(once, [] {
    all();
    std::atexit(end_all);
    pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                   [] {
                     for (rtm_loop* one : all().loops) one->loop.disown();
                     all().mutex.unlock();
                   });
  });
}

void say(char* error, std::size_t bytes, const char* text) {
  if (error != nullptr && bytes > 0) std::snprintf(error, bytes, "%s", text);
}

void say(char* error, std::size_t bytes, const std::exception& what) {
  const auto* failure = dynamic_cast<const rtmeter::Failure*>(&what);
  if (failure == nullptr) return say(error, bytes, what.what());
  const std::string text =
      failure->field() + " " + failure->value() + ": " + failure->what() + "; " + failure->remedy();
  say(error, bytes, text.c_str());
}

// Of a program compiled with an older header, whose struct is shorter: the rest is default.
rtm_loop_options options_of(const rtm_loop_options* given) {
  rtm_loop_options options = RTM_LOOP_OPTIONS;
  if (given == nullptr) return options;
  if (given->size < sizeof given->size || given->size > sizeof options)
    throw rtmeter::Failure(
        "options.size", std::to_string(given->size), "is not this library's",
        "begin with RTM_LOOP_OPTIONS, and build with the header of the library that is linked");
  std::memcpy(&options, given, given->size);
  return options;
}

}  // namespace

rtm_loop* rtm_loop_open(const char* name, int64_t period_ns, const rtm_loop_options* options, char* error,
                        size_t error_bytes) {
  try {
    watch_process();
    auto* loop = new rtm_loop{{name == nullptr ? "" : name, period_ns, options_of(options)}};
    const std::lock_guard lock(all().mutex);
    all().loops.push_back(loop);
    return loop;
  } catch (const std::exception& what) {
    say(error, error_bytes, what);
    return nullptr;
  }
}

int64_t rtm_loop_sleep(rtm_loop* loop) { return loop == nullptr ? -1 : loop->loop.sleep(); }

void rtm_loop_wake(rtm_loop* loop, int64_t due_ns) {
  if (loop != nullptr) loop->loop.wake(loop->loop.now_ns(), due_ns);
}

void rtm_loop_done(rtm_loop* loop) {
  if (loop != nullptr) loop->loop.done(loop->loop.now_ns());
}

int rtm_loop_close(rtm_loop* loop, char* error, size_t error_bytes) {
  if (loop == nullptr) return 0;
  {
    const std::lock_guard lock(all().mutex);
    std::erase(all().loops, loop);
  }
  if (loop->loop.inherited()) return 0;  // its writer is the parent's; its memory goes with the child
  int result = 0;
  try {
    loop->loop.end(loop->loop.now_ns());
  } catch (const std::exception& what) {
    say(error, error_bytes, what);
    result = -1;
  }
  delete loop;
  return result;
}
