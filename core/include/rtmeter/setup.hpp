// What an adapter says while it is set up: why it failed, and what there is to tell of it. C++14,
// header-only. SPDX-License-Identifier: Apache-2.0
#pragma once

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
  // What this session brought, and nobody asked for: no condition of what is measured.
  Sink& put_chosen(const std::string& key, const std::string& value) {
    return put(key, value).put("chosen", key);
  }

 private:
  rtm_sink* sink_;
};

// Calls what may fail; 0, or the exception as *error and -1. What the middleware threw is an error of the
// field that was set up with that value.
template <typename Call>
int set_up(rtm_error* error, const char* field, const std::string& value, Call&& call) noexcept {
  const char* remedy = "see the middleware's messages in the cell's probe.stderr";
  try {
    call();
    return 0;
  } catch (const SetupError& e) {
    return rtm_fail(error, e.field().c_str(), e.value().c_str(), e.what(), e.remedy().c_str());
  } catch (const std::exception& e) {
    return rtm_fail(error, field, value.c_str(), e.what(), remedy);
  } catch (...) {
    return rtm_fail(error, field, value.c_str(), "the middleware threw something that is not an exception",
                    remedy);
  }
}

}  // namespace rtmeter
