#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_set>

#include "errors.hpp"
#include "json/json.hpp"
#include "json/utf8.hpp"

namespace rtmeter {
namespace {

constexpr int kMaxDepth = 64;

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

}  // namespace

Json Json::parse(const std::string& text, const std::string& where) { return Parser(text, where).document(); }

}  // namespace rtmeter
