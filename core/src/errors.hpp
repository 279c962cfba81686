// The core's one error: what the user sees. Thrown during setup only.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace rtmeter {

class Failure : public std::runtime_error {
 public:
  Failure(std::string field, std::string value, const std::string& message, std::string remedy)
      : std::runtime_error(message), field_(std::move(field)), value_(std::move(value)),
        remedy_(std::move(remedy)) {}
  const std::string& field() const noexcept { return field_; }
  const std::string& value() const noexcept { return value_; }
  const std::string& remedy() const noexcept { return remedy_; }

 private:
  std::string field_, value_, remedy_;
};

// Any exception as what the user sees: a middleware's says no more than a text.
inline Failure as_failure(const std::exception& error) {
  if (const auto* failure = dynamic_cast<const Failure*>(&error)) return *failure;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {
        "memory", "", "there is not enough for what the run asks for",
        "give a smaller payload, a shorter loss timeout or fewer samples, or raise the limit (ulimit -v)"};
  return {"probe", "", error.what(), "see the middleware's own messages on standard error"};
}

}  // namespace rtmeter
