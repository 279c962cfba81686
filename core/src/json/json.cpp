#include "json/json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "errors.hpp"
#include "json/utf8.hpp"

namespace rtmeter {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD, for bytes that are not UTF-8

void dump_string(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    const std::size_t length = utf8_length(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[0];
    } else if (c < 0x20 || c == 0x7F) {
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else if (length == 0) {
      out += kReplacement;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

// Shortest text that reads back as the same double, always recognisable as one.
void dump_double(std::string& out, double d) {
  if (!std::isfinite(d)) {  // JSON has no word for it
    out += "null";
    return;
  }
  std::array<char, 32> buffer;
  const std::string_view text(
      buffer.data(),
      static_cast<std::size_t>(std::to_chars(buffer.begin(), buffer.end(), d).ptr - buffer.data()));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

void dump_to(std::string& out, const Json& json) {
  if (json.is_null()) {
    out += "null";
  } else if (json.is_bool()) {
    out += json.as_bool() ? "true" : "false";
  } else if (json.is_int()) {
    out += std::to_string(json.as_int());
  } else if (json.is_number()) {
    dump_double(out, json.as_number());
  } else if (json.is_string()) {
    dump_string(out, json.as_string());
  } else if (json.is_array()) {
    char separator = '[';
    for (const Json& element : json.as_array()) {
      out += separator;
      dump_to(out, element);
      separator = ',';
    }
    out += separator == '[' ? "[]" : "]";
  } else {
    char separator = '{';
    for (const auto& [key, member] : json.as_object()) {
      out += separator;
      dump_string(out, key);
      out += ':';
      dump_to(out, member);
      separator = ',';
    }
    out += separator == '{' ? "{}" : "}";
  }
}

template <typename T>
T& typed(const Json& json, T* value, const char* expected) {
  if (value != nullptr) return *value;
  constexpr std::size_t kShown = 60;
  std::string text = json.dump();
  if (text.size() > kShown) text = text.substr(0, kShown) + "…";
  throw Failure("", text, std::string("expected ") + expected, std::string("give ") + expected);
}

}  // namespace

bool Json::is_null() const { return std::holds_alternative<std::monostate>(value_); }
bool Json::is_bool() const { return std::holds_alternative<bool>(value_); }
bool Json::is_int() const { return std::holds_alternative<std::int64_t>(value_); }
bool Json::is_number() const { return is_int() || std::holds_alternative<double>(value_); }
bool Json::is_string() const { return std::holds_alternative<std::string>(value_); }
bool Json::is_array() const { return std::holds_alternative<Array>(value_); }
bool Json::is_object() const { return std::holds_alternative<Object>(value_); }

bool Json::as_bool() const { return typed(*this, std::get_if<bool>(&value_), "true or false"); }
std::int64_t Json::as_int() const { return typed(*this, std::get_if<std::int64_t>(&value_), "an integer"); }
double Json::as_number() const {
  if (is_int()) return static_cast<double>(as_int());
  return typed(*this, std::get_if<double>(&value_), "a number");
}
const std::string& Json::as_string() const {
  return typed(*this, std::get_if<std::string>(&value_), "a string");
}
const Json::Array& Json::as_array() const { return typed(*this, std::get_if<Array>(&value_), "a list"); }
const Json::Object& Json::as_object() const {
  return typed(*this, std::get_if<Object>(&value_), "an object");
}

const Json* Json::find(const std::string& key) const {
  const auto* members = std::get_if<Object>(&value_);
  if (members == nullptr) return nullptr;
  for (const auto& [name, member] : *members) {
    if (name == key) return &member;
  }
  return nullptr;
}

Json& Json::operator[](const std::string& key) {
  if (is_null()) value_ = Object{};
  auto& members = typed(*this, std::get_if<Object>(&value_), "an object");
  for (auto& [name, member] : members) {
    if (name == key) return member;
  }
  return members.emplace_back(key, Json()).second;
}

Json& Json::push(Json element) {
  if (is_null()) value_ = Array{};
  typed(*this, std::get_if<Array>(&value_), "a list").push_back(std::move(element));
  return *this;
}

std::string Json::dump() const {
  std::string out;
  dump_to(out, *this);
  return out;
}

}  // namespace rtmeter
