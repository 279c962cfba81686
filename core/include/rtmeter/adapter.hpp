// The adapter contract for C++14 and later, header-only: derive from rtmeter::Adapter, then
// RTMETER_ADAPTER_MAIN(YourAdapter). Methods are those of rtm_adapter (adapter.h says what each does).
// Setup methods throw rtmeter::SetupError; measured-path methods are noexcept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "rtmeter/adapter.h"

namespace rtmeter {

// Why setup failed: which field, its value, what is wrong, and what to do about it.
class SetupError : public std::runtime_error {
 public:
  SetupError(std::string field, std::string value, const std::string& message, std::string remedy)
      : std::runtime_error(message), field_(std::move(field)), value_(std::move(value)),
        remedy_(std::move(remedy)) {}
  const std::string& field() const { return field_; }
  const std::string& value() const { return value_; }
  const std::string& remedy() const { return remedy_; }

 private:
  std::string field_, value_, remedy_;
};

// Puts text into an rtm_sink.
class Sink {
 public:
  explicit Sink(rtm_sink* sink) : sink_(sink) {}
  Sink& put(const std::string& key, const std::string& value) {
    sink_->put(sink_, key.c_str(), value.c_str());
    return *this;
  }

 private:
  rtm_sink* sink_;
};

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

  virtual int arm(void* /*timer*/, std::int64_t /*now_ns*/) noexcept { return -1; }
  virtual int publish(void* /*publisher*/, const rtm_message& /*message*/) noexcept { return -1; }
  virtual int spin(std::int64_t /*timeout_ns*/) noexcept { return -1; }
  virtual int wait(std::int64_t /*timeout_ns*/) noexcept { return -1; }
  virtual int spin_some() noexcept { return -1; }
  virtual void interrupt() noexcept {}

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

  std::deque<detail::Handle> handles_;  // growing moves none
};

namespace detail {

template <typename F>
int guarded(rtm_error* error, F&& body) {
  try {
    body();
    return 0;
  } catch (const SetupError& e) {
    return rtm_fail(error, e.field().c_str(), e.value().c_str(), e.what(), e.remedy().c_str());
  } catch (const std::exception& e) {
    return rtm_fail(error, "adapter", "", e.what(), "see the middleware's own messages above");
  } catch (...) {
    return rtm_fail(error, "adapter", "", "the middleware threw something that is not an exception",
                    "see the middleware's own messages above");
  }
}

inline Handle* handle(void* h) { return static_cast<Handle*>(h); }
inline Adapter* adapter(void* self) { return static_cast<Adapter*>(self); }

}  // namespace detail

// The C table of an Adapter class.
template <typename A>
const rtm_adapter* adapter_table() {
  static const rtm_adapter table = {
      RTM_ADAPTER_ABI,
      [](const void* self, rtm_sink* raw) {
        Sink sink(raw);
        A::describe_static(sink);
        if (self != nullptr) static_cast<const Adapter*>(self)->describe(sink);
      },
      [](const rtm_run* run, void** self, rtm_error* error) {
        return detail::guarded(error, [&] { *self = static_cast<Adapter*>(new A(*run)); });
      },
      [](void* self) { delete detail::adapter(self); },
      [](void* self, const char* name, void** node, rtm_error* error) {
        return detail::guarded(error, [&] {
          auto* a = detail::adapter(self);
          *node = a->handle_of(a->create_node(name));
        });
      },
      [](void* node, const rtm_timer_spec* spec, void** timer, rtm_timer_traits* traits, rtm_error* error) {
        return detail::guarded(error, [&] {
          auto* a = detail::handle(node)->adapter;
          *timer = a->handle_of(a->create_timer(detail::handle(node)->inner, *spec, *traits));
        });
      },
      [](void* timer, int64_t now_ns) {
        auto* h = detail::handle(timer);
        return h->adapter->arm(h->inner, now_ns);
      },
      [](void* node, const char* topic, void** publisher, rtm_error* error) {
        return detail::guarded(error, [&] {
          auto* a = detail::handle(node)->adapter;
          *publisher = a->handle_of(a->create_publisher(detail::handle(node)->inner, topic));
        });
      },
      [](void* node, const char* topic, rtm_on_message on_message, void* user, void** subscriber,
         rtm_error* error) {
        return detail::guarded(error, [&] {
          auto* a = detail::handle(node)->adapter;
          *subscriber =
              a->handle_of(a->create_subscriber(detail::handle(node)->inner, topic, on_message, user));
        });
      },
      [](void* publisher, const rtm_message* message) {
        auto* h = detail::handle(publisher);
        return h->adapter->publish(h->inner, *message);
      },
      [](void* self, int64_t timeout_ns) { return detail::adapter(self)->spin(timeout_ns); },
      [](void* self, int64_t timeout_ns) { return detail::adapter(self)->wait(timeout_ns); },
      [](void* self) { return detail::adapter(self)->spin_some(); },
      [](void* self) { detail::adapter(self)->interrupt(); },
  };
  return &table;
}

}  // namespace rtmeter

#define RTMETER_ADAPTER_MAIN(AdapterClass)                                     \
  int main(int argc, char** argv) {                                            \
    return rtm_probe_main(argc, argv, rtmeter::adapter_table<AdapterClass>()); \
  }
