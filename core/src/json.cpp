#include "json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <unordered_set>

#include "errors.hpp"

namespace rtmeter {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the UTF-8 character that text starts with (RFC 3629); 0 if it is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return text.empty() ? 0 : 1;
  const std::size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate_or_above = (lead == 0xED && second >= 0xA0) || (lead == 0xF4 && second >= 0x90);
  return overlong || surrogate_or_above ? 0 : length;
}

void append_utf8(std::string& out, unsigned code) {
  const auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Json document() {
    Json json = value(0);
    skip_space();
    if (at_ < text_.size()) fail("text behind the end of the value");
    return json;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n' ? 1 : 0;
    }
    throw Failure(where_, "",
                  "line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + what,
                  "give valid JSON (RFC 8259)");
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  bool take(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  Json value(int depth) {
    if (depth > kMaxDepth) fail("nested more than 64 deep");
    skip_space();
    if (at_ == text_.size()) fail("the text ends where a value is expected");
    if (take("null")) return {};
    if (take("true")) return true;
    if (take("false")) return false;
    switch (peek()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return string();
      default:
        return number();
    }
  }

  // After an element of a list that `close` ends: true if another one follows.
  bool more(char close) {
    skip_space();
    if (take(",")) return true;
    if (peek() != close) fail(std::string("expected ',' or '") + close + "'");
    ++at_;
    return false;
  }

  bool empty(char close) {
    ++at_;
    skip_space();
    if (peek() != close) return false;
    ++at_;
    return true;
  }

  Json array(int depth) {
    Json::Array elements;
    if (empty(']')) return elements;
    do {
      elements.push_back(value(depth + 1));
    } while (more(']'));
    return elements;
  }

  Json object(int depth) {
    Json::Object members;
    std::unordered_set<std::string> keys;
    if (empty('}')) return members;
    do {
      skip_space();
      if (peek() != '"') fail("expected a key in double quotes");
      std::string key = string();
      if (!keys.insert(key).second) fail("the key \"" + key + "\" is there twice");
      skip_space();
      if (!take(":")) fail("expected ':' behind the key \"" + key + "\"");
      Json member = value(depth + 1);
      members.emplace_back(std::move(key), std::move(member));
    } while (more('}'));
    return members;
  }

  std::string string() {
    std::string out;
    for (++at_; peek() != '"';) {
      if (at_ == text_.size()) fail("the text ends within a string");
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c < 0x20) fail("a control character within a string; escape it");
      if (c == '\\') {
        ++at_;
        escape(out);
        continue;
      }
      const std::size_t length = utf8_length(text_.substr(at_));
      if (length == 0) fail("not UTF-8");
      out += text_.substr(at_, length);
      at_ += length;
    }
    ++at_;
    return out;
  }

  void escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (take("u")) {
      unsigned code = hex4();
      if (code >= 0xD800 && code < 0xDC00 && take("\\u")) {
        const unsigned low = hex4();
        if (low < 0xDC00 || low > 0xDFFF) fail("half a surrogate pair");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      } else if (code >= 0xD800 && code < 0xE000) {
        fail("half a surrogate pair");
      }
      append_utf8(out, code);
      return;
    }
    const std::size_t i = peek() == '\0' ? std::string_view::npos : kNames.find(peek());
    if (i == std::string_view::npos) fail("an unknown escape within a string");
    out += kMeanings[i];
    ++at_;
  }

  unsigned hex4() {
    unsigned code = 0;
    const char* begin = text_.data() + at_;
    const char* end = begin + std::min<std::size_t>(4, text_.size() - at_);
    const auto [stop, error] = std::from_chars(begin, end, code, 16);
    if (error != std::errc() || stop != begin + 4) fail("expected four hexadecimal digits behind \\u");
    at_ += 4;
    return code;
  }

  std::size_t digits() {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    if (at_ == begin) fail("expected a value");
    return at_ - begin;
  }

  Json number() {
    const std::size_t begin = at_;
    take("-");
    const bool leading_zero = peek() == '0';
    if (digits() > 1 && leading_zero) fail("a number with a leading zero");
    const std::size_t integer_end = at_;
    if (take(".")) digits();
    if (take("e") || take("E")) {
      if (!take("+")) take("-");
      digits();
    }
    const char *first = text_.data() + begin, *last = text_.data() + at_;
    if (at_ == integer_end) {
      std::int64_t i = 0;
      if (std::from_chars(first, last, i).ec == std::errc()) return i;
    }
    double d = 0;
    if (std::from_chars(first, last, d).ec != std::errc()) fail("a number out of range");
    return d;
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
};

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

Json Json::parse(const std::string& text, const std::string& where) { return Parser(text, where).document(); }

}  // namespace rtmeter
