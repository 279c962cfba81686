// JSON, as much as configs, headers and status lines need (RFC 8259). Objects keep their order.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace rtmeter {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool b) : value_(b) {}
  Json(int i) : value_(static_cast<std::int64_t>(i)) {}
  Json(unsigned i) : value_(static_cast<std::int64_t>(i)) {}
  Json(long i) : value_(static_cast<std::int64_t>(i)) {}
  Json(long long i) : value_(static_cast<std::int64_t>(i)) {}
  Json(unsigned long i) : value_(static_cast<std::int64_t>(i)) {}
  Json(unsigned long long i) : value_(static_cast<std::int64_t>(i)) {}
  Json(double d) : value_(d) {}
  Json(const char* s) : value_(std::string(s)) {}
  Json(std::string s) : value_(std::move(s)) {}
  Json(Array a) : value_(std::move(a)) {}
  Json(Object o) : value_(std::move(o)) {}
  static Json object() { return Json(Object{}); }
  static Json array() { return Json(Array{}); }

  bool is_null() const;
  bool is_bool() const;
  bool is_int() const;     // an integer that fits int64
  bool is_number() const;
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;

  // Typed access; throws Failure (errors.hpp) on another type.
  bool as_bool() const;
  std::int64_t as_int() const;
  double as_number() const;
  const std::string& as_string() const;
  const Array& as_array() const;
  const Object& as_object() const;

  const Json* find(const std::string& key) const;  // null if absent or not an object
  Json& operator[](const std::string& key);        // object: inserts null if absent
  Json& push(Json element);                        // array: appends, returns *this

  // Compact text, UTF-8 passed through, control characters escaped, no newline.
  std::string dump() const;
  // Throws Failure with line and column; limits depth to 64; refuses duplicate keys and trailing text.
  static Json parse(const std::string& text, const std::string& where);

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

}  // namespace rtmeter
