// The options of an adapter. Each is declared once: that is what `rtmeter adapters` lists, what reads the
// run's value, and what refuses a wrong one. C++14, header-only.
//
//   struct Options : rtmeter::OptionSet {
//     rtmeter::Choice transport{*this, "transport", {"udp", "shm"}, "what carries messages"};
//     rtmeter::Number dscp{*this, "dscp", 0, 63, "the field DSCP of what is sent"};
//   };
//   Options().describe(sink);                                 // in describe_static()
//   const std::string transport = Options().transport.of(run);  // in the constructor
//
// An option is read where it means something; one that the user gave and nothing read is refused by the core.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "rtmeter/setup.hpp"

namespace rtmeter {

class Option;

// The options that are its members, in the order of their declaration.
class OptionSet {
 public:
  OptionSet() = default;
  OptionSet(const OptionSet&) = delete;  // it knows its members by address
  OptionSet& operator=(const OptionSet&) = delete;

  inline void describe(Sink& sink) const;
  // Takes out one that this adapter has not, although those that it shares the declaration with have.
  void leave_out(const Option& option) {
    options_.erase(std::remove(options_.begin(), options_.end(), &option), options_.end());
  }

 private:
  friend class Option;
  std::vector<const Option*> options_;
};

class Option {
 public:
  Option(const Option&) = delete;
  Option& operator=(const Option&) = delete;
  virtual ~Option() = default;

  const std::string& key() const { return key_; }
  // Of errors.
  std::string field() const { return "option " + key_; }
  bool given(const rtm_run& run) const { return rtm_option_or(&run, key_.c_str(), nullptr) != nullptr; }
  // As the run has it, unchecked.
  std::string text_or(const rtm_run& run, const std::string& otherwise) const {
    return rtm_option_or(&run, key_.c_str(), otherwise.c_str());
  }
  void describe(Sink& sink) const { sink.put("option." + key_, values() + about_); }
  SetupError error(const std::string& value, const std::string& message, const std::string& remedy) const {
    return SetupError(field(), value, message, remedy);
  }

 protected:
  Option(OptionSet& set, std::string key, std::string about)
      : key_(std::move(key)), about_(std::move(about)) {
    set.options_.push_back(this);
  }
  // What precedes its meaning where it is described.
  virtual std::string values() const { return ""; }

 private:
  const std::string key_, about_;
};

inline void OptionSet::describe(Sink& sink) const {
  for (const Option* option : options_) option->describe(sink);
}

// Any text, which the adapter checks itself. `about` says its form, and what it is by default.
class Text : public Option {
 public:
  Text(OptionSet& set, std::string key, std::string about) : Option(set, std::move(key), std::move(about)) {}
  std::string of(const rtm_run& run, const std::string& otherwise = "") const {
    return text_or(run, otherwise);
  }
};

// A whole number within limits. `about` says what it is by default.
class Number : public Option {
 public:
  Number(OptionSet& set, std::string key, std::int64_t least, std::int64_t most, std::string about)
      : Option(set, std::move(key), std::move(about)), least_(least), most_(most) {}

  std::int64_t of(const rtm_run& run, std::int64_t otherwise) const {
    return given(run) ? parse(text_or(run, ""), field()) : otherwise;
  }
  // Also for the same number by another way, such as a variable of the environment.
  std::int64_t parse(const std::string& text, const std::string& from) const {
    const std::string digits = text.substr(text.compare(0, 1, "-") == 0 ? 1 : 0);
    errno = 0;
    const long long number = std::strtoll(text.c_str(), nullptr, 10);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos || errno != 0 ||
        number < least_ || number > most_)
      throw SetupError(from, text, "is no whole number " + range(), "give one, or leave it out");
    return number;
  }

 private:
  std::string range() const { return "from " + std::to_string(least_) + " to " + std::to_string(most_); }
  std::string values() const override {
    return std::to_string(least_) + " to " + std::to_string(most_) + ": ";
  }

  const std::int64_t least_, most_;
};

// One of some words, the first by default.
class Choice : public Option {
 public:
  Choice(OptionSet& set, std::string key, std::vector<std::string> words, std::string about)
      : Option(set, std::move(key), std::move(about)), words_(std::move(words)) {}

  std::string of(const rtm_run& run) const { return of(run, words_); }
  // Of those that are possible in this run, the first by default.
  std::string of(const rtm_run& run, const std::vector<std::string>& possible) const {
    std::string word = text_or(run, possible.front());
    if (!contains(possible, word))
      throw error(word, contains(words_, word) ? "means nothing in this run" : "no such choice",
                  "choose one of " + joined(possible, ", "));
    return word;
  }
  const std::vector<std::string>& words() const { return words_; }

 protected:
  static bool contains(const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

 private:
  static std::string joined(const std::vector<std::string>& words, const char* separator) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : separator) + word;
    return all;
  }
  std::string values() const override { return joined(words_, "|") + ": "; }

  const std::vector<std::string> words_;
};

// Words that stand for values of the adapter's own.
template <typename Value>
class ChoiceOf : public Choice {
 public:
  ChoiceOf(OptionSet& set, std::string key, std::vector<std::pair<std::string, Value>> values,
           std::string about)
      : Choice(set, std::move(key), words_of(values), std::move(about)), values_(std::move(values)) {}

  std::string word_of(const rtm_run& run) const { return Choice::of(run); }
  Value of(const rtm_run& run) const {
    const std::string word = word_of(run);
    const auto is_it = [&word](const std::pair<std::string, Value>& one) { return one.first == word; };
    return std::find_if(values_.begin(), values_.end(), is_it)->second;
  }

 private:
  static std::vector<std::string> words_of(const std::vector<std::pair<std::string, Value>>& values) {
    std::vector<std::string> words;
    for (const auto& value : values) words.push_back(value.first);
    return words;
  }

  const std::vector<std::pair<std::string, Value>> values_;
};

// yes or no; no by default.
class Flag : public ChoiceOf<bool> {
 public:
  Flag(OptionSet& set, std::string key, std::string about)
      : ChoiceOf<bool>(set, std::move(key), {{"no", false}, {"yes", true}}, std::move(about)) {}
};

}  // namespace rtmeter
