// The adapter contract for C++14 and later, header-only: derive from rtmeter::Adapter, then
// RTMETER_ADAPTER_MAIN(YourAdapter). Methods are those of rtm_adapter (adapter.h says what each does).
// Setup methods throw rtmeter::SetupError. What the middleware throws is caught here: in setup it is an
// error, on the measured path a refused call, which is counted and told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <string>
#include <type_traits>

#include "rtmeter/adapter.h"
#include "rtmeter/option.hpp"
#include "rtmeter/setup.hpp"

namespace rtmeter {

// The most messages or ticks that one spin_some() serves: it returns also where more comes than can be
// served.
constexpr int kBurst = 1024;

inline std::string option_or(const rtm_run& run, const char* key, const char* otherwise) {
  return rtm_option_or(&run, key, otherwise);
}

class Adapter;

namespace detail {

// Handles that cross the C border must know their adapter: arm() and publish() get only the handle.
struct Handle {
  Adapter* adapter;
  void* inner;
};

}  // namespace detail

// Derive, implement what the middleware can, leave the rest: an unimplemented setup method answers
// "this adapter cannot". A derived class also has
//   static void describe_static(Sink&)       what is known before start
//   explicit Derived(const rtm_run&)         start; throws SetupError
class Adapter {
 public:
  virtual ~Adapter() = default;

  virtual void describe(Sink& /*sink*/) const {}
  virtual void* create_node(const std::string& /*name*/) { return this; }
  virtual void* create_timer(void* /*node*/, const rtm_timer_spec& /*spec*/, rtm_timer_traits& /*traits*/) {
    throw cannot("timer");
  }
  virtual void* create_publisher(void* /*node*/, const std::string& /*topic*/) { throw cannot("publisher"); }
  virtual void* create_subscriber(void* /*node*/, const std::string& /*topic*/, rtm_on_message /*on_message*/,
                                  void* /*user*/) {
    throw cannot("subscriber");
  }
  virtual void* create_client(void* /*node*/, const std::string& /*service*/, rtm_on_reply /*on_reply*/,
                              void* /*user*/) {
    throw cannot("client");
  }
  virtual void* create_server(void* /*node*/, const std::string& /*service*/, rtm_on_message /*on_request*/,
                              void* /*user*/) {
    throw cannot("server");
  }
  virtual void watch(void* /*node*/, rtm_on_match /*on_match*/, void* /*user*/) {
    throw cannot("matches to tell of");
  }
  virtual void tell_stamps(void* /*node*/, rtm_on_stamp /*on_stamp*/, void* /*user*/) {
    throw cannot("stamps of the kernel");
  }

  // Measured path. One that throws has refused the call.
  virtual int arm(void* /*timer*/, std::int64_t /*now_ns*/) { return -1; }
  virtual int publish(void* /*publisher*/, const rtm_message& /*message*/) { return -1; }
  virtual int call(void* /*client*/, const rtm_message& /*request*/) { return -1; }
  virtual int reply(void* /*server*/, rtm_reply /*what*/, const rtm_message& /*message*/) { return -1; }
  virtual int spin(std::int64_t /*timeout_ns*/) { return -1; }
  virtual int wait(std::int64_t /*timeout_ns*/) { return -1; }
  virtual int spin_some() { return -1; }
  virtual void interrupt() {}

  // The call's result; -1 if it threw, and describe_exception() then tells what. For the wrapper itself, and
  // for what an adapter calls on threads of its own. Measured path, any thread.
  template <typename Call>
  int attempt(const char* what, Call&& call) noexcept {
    try {
      return call();
    } catch (const std::exception& e) {
      if (!keeps_.test_and_set()) keep(what, e.what());
    } catch (...) {
      if (!keeps_.test_and_set()) keep(what, "something that is not an exception");
    }
    return -1;
  }
  // Puts `exception`: the first call that threw, and what.
  void describe_exception(Sink& sink) const {
    if (threw_.load(std::memory_order_acquire)) sink.put("exception", exception_);
  }

  // What crosses the C border for an object that a create_ method returned; lives until stop(). [setup]
  void* handle_of(void* inner) {
    handles_.push_back({this, inner});
    return &handles_.back();
  }

 private:
  static SetupError cannot(const char* what) {
    return SetupError("measurement", what, std::string("this adapter has no ") + what,
                      "choose a measurement that `rtmeter adapters` lists for it");
  }

  void keep(const char* what, const char* why) noexcept {
    std::snprintf(exception_, sizeof exception_, "%s threw: %s", what, why);
    threw_.store(true, std::memory_order_release);
  }

  std::deque<detail::Handle> handles_;  // growing moves none
  std::atomic_flag keeps_ = ATOMIC_FLAG_INIT;
  std::atomic<bool> threw_{false};
  char exception_[256] = "";  // written before threw_ is set
};

namespace detail {

inline Handle* handle(void* h) { return static_cast<Handle*>(h); }
inline Adapter* adapter(void* self) { return static_cast<Adapter*>(self); }

// The call as a function of the table's, or null where the adapter did not override the method: the core
// refuses what needs it. Methods are told apart by their types, which name the class that declares them.
template <typename Own, typename Base, typename Call>
auto own(Call call) -> decltype(+call) {
  return std::is_same<Own, Base>::value ? nullptr : +call;
}
#define RTMETER_METHODS(A, method) decltype(&A::method), decltype(&Adapter::method)

}  // namespace detail

// The C table of an Adapter class.
template <typename A>
const rtm_adapter* adapter_table() {
  using namespace detail;
  static const rtm_adapter table = {
      RTM_ADAPTER_ABI,
      [](const void* self, rtm_sink* raw) {
        Sink sink(raw);
        rtm_error error{};
        const auto* a = static_cast<const Adapter*>(self);
        const auto put = [&] {
          A::describe_static(sink);
          if (a != nullptr) a->describe(sink);
        };
        if (set_up(&error, "adapter", "describe", put) != 0)
          sink.put("describe_failed.field", error.field)
              .put("describe_failed.value", error.value)
              .put("describe_failed.message", error.message)
              .put("describe_failed.remedy", error.remedy);
        if (a != nullptr) a->describe_exception(sink);
      },
      [](const rtm_run* run, void** self, rtm_error* error) {
        return set_up(error, "adapter", "start", [&] { *self = static_cast<Adapter*>(new A(*run)); });
      },
      [](void* self) { delete adapter(self); },
      [](void* self, const char* name, void** node, rtm_error* error) {
        return set_up(error, "node", name, [&] {
          auto* a = adapter(self);
          *node = a->handle_of(a->create_node(name));
        });
      },
      own<RTMETER_METHODS(A, create_timer)>([](void* node, const rtm_timer_spec* spec, void** timer,
                                               rtm_timer_traits* traits, rtm_error* error) {
        return set_up(error, "timer", std::to_string(spec->period_ns) + " ns", [&] {
          auto* a = handle(node)->adapter;
          *timer = a->handle_of(a->create_timer(handle(node)->inner, *spec, *traits));
        });
      }),
      own<RTMETER_METHODS(A, arm)>([](void* timer, int64_t now_ns) {
        auto* h = handle(timer);
        return h->adapter->attempt("arm", [&] { return h->adapter->arm(h->inner, now_ns); });
      }),
      own<RTMETER_METHODS(A, create_publisher)>(
          [](void* node, const char* topic, void** publisher, rtm_error* error) {
            return set_up(error, "topic", topic, [&] {
              auto* a = handle(node)->adapter;
              *publisher = a->handle_of(a->create_publisher(handle(node)->inner, topic));
            });
          }),
      own<RTMETER_METHODS(A, create_subscriber)>([](void* node, const char* topic, rtm_on_message on_message,
                                                    void* user, void** subscriber, rtm_error* error) {
        return set_up(error, "topic", topic, [&] {
          auto* a = handle(node)->adapter;
          *subscriber = a->handle_of(a->create_subscriber(handle(node)->inner, topic, on_message, user));
        });
      }),
      own<RTMETER_METHODS(A, publish)>([](void* publisher, const rtm_message* message) {
        auto* h = handle(publisher);
        return h->adapter->attempt("publish", [&] { return h->adapter->publish(h->inner, *message); });
      }),
      own<RTMETER_METHODS(A, spin)>([](void* self, int64_t timeout_ns) {
        return adapter(self)->attempt("spin", [&] { return adapter(self)->spin(timeout_ns); });
      }),
      own<RTMETER_METHODS(A, wait)>([](void* self, int64_t timeout_ns) {
        return adapter(self)->attempt("wait", [&] { return adapter(self)->wait(timeout_ns); });
      }),
      own<RTMETER_METHODS(A, spin_some)>([](void* self) {
        return adapter(self)->attempt("spin_some", [&] { return adapter(self)->spin_some(); });
      }),
      own<RTMETER_METHODS(A, interrupt)>([](void* self) {
        adapter(self)->attempt("interrupt", [&] {
          adapter(self)->interrupt();
          return 0;
        });
      }),
      own<RTMETER_METHODS(A, create_client)>([](void* node, const char* service, rtm_on_reply on_reply,
                                                void* user, void** client, rtm_error* error) {
        return set_up(error, "service", service, [&] {
          auto* a = handle(node)->adapter;
          *client = a->handle_of(a->create_client(handle(node)->inner, service, on_reply, user));
        });
      }),
      own<RTMETER_METHODS(A, create_server)>([](void* node, const char* service, rtm_on_message on_request,
                                                void* user, void** server, rtm_error* error) {
        return set_up(error, "service", service, [&] {
          auto* a = handle(node)->adapter;
          *server = a->handle_of(a->create_server(handle(node)->inner, service, on_request, user));
        });
      }),
      own<RTMETER_METHODS(A, call)>([](void* client, const rtm_message* request) {
        auto* h = handle(client);
        return h->adapter->attempt("call", [&] { return h->adapter->call(h->inner, *request); });
      }),
      own<RTMETER_METHODS(A, reply)>([](void* server, rtm_reply what, const rtm_message* message) {
        auto* h = handle(server);
        return h->adapter->attempt("reply", [&] { return h->adapter->reply(h->inner, what, *message); });
      }),
      own<RTMETER_METHODS(A, watch)>([](void* node, rtm_on_match on_match, void* user, rtm_error* error) {
        return set_up(error, "node", "watch",
                      [&] { handle(node)->adapter->watch(handle(node)->inner, on_match, user); });
      }),
      own<RTMETER_METHODS(A, tell_stamps)>(
          [](void* node, rtm_on_stamp on_stamp, void* user, rtm_error* error) {
            return set_up(error, "node", "tell_stamps",
                          [&] { handle(node)->adapter->tell_stamps(handle(node)->inner, on_stamp, user); });
          }),
  };
  return &table;
}

}  // namespace rtmeter

#undef RTMETER_METHODS
#define RTMETER_ADAPTER_MAIN(AdapterClass)                                     \
  int main(int argc, char** argv) {                                            \
    return rtm_probe_main(argc, argv, rtmeter::adapter_table<AdapterClass>()); \
  }
