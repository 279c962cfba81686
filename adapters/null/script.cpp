#include "script.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>

#include "options.hpp"
#include "rtmeter/adapter.hpp"
#include "scripted_clock.hpp"

namespace rtmeter::null {
namespace {

using Cells = std::vector<std::string>;

struct Column {
  const char* name;
  std::int64_t Script::Row::* value;
  bool never;     // may be empty
  bool negative;  // may be early
};

constexpr Column kColumns[] = {
    {"wake_delay_ns", &Script::Row::wake_delay_ns, false, true},
    {"fire_delay_ns", &Script::Row::fire_delay_ns, true, true},
    {"reply_delay_ns", &Script::Row::reply_delay_ns, true, false},
    {"request_delay_ns", &Script::Row::request_delay_ns, true, false},
    {"respond_delay_ns", &Script::Row::respond_delay_ns, true, false},
    {"accept_delay_ns", &Script::Row::accept_delay_ns, true, false},
    {"feedback_delay_ns", &Script::Row::feedback_delay_ns, true, false},
    {"match_delay_ns", &Script::Row::match_delay_ns, true, false},
    {"message_delay_ns", &Script::Row::message_delay_ns, true, false},
    {"subscriber_delay_ns", &Script::Row::subscriber_delay_ns, false, false},
    {"publisher_delay_ns", &Script::Row::publisher_delay_ns, false, false},
    {"background_delay_ns", &Script::Row::background_delay_ns, false, false},
};

// A column for two ends: from one stage or participant to another, from a ping to a further subscriber.
constexpr Column kEdge = {"", nullptr, true, false};
bool is_numbered(const std::string& name, const std::string& word) {
  return name.size() > word.size() && name.compare(0, word.size(), word) == 0 &&
         name.find_first_not_of("0123456789", word.size()) == std::string::npos;
}
bool is_edge(const std::string& name, const rtm_run& run) {
  const std::size_t middle = name.find('>');
  if (middle == std::string::npos) return false;
  const std::string from = name.substr(0, middle), to = name.substr(middle + 1);
  if (run.measurement == RTM_ROUNDTRIP) return from == "ping" && is_numbered(to, "subscriber");
  if (run.measurement == RTM_DISCOVERY) return is_numbered(from, "p") && is_numbered(to, "p") && from != to;
  return run.measurement == RTM_CHAIN;
}

// Columns without which the script says nothing about the measurement.
std::vector<std::string> needed(const rtm_run& run) {
  switch (run.measurement) {
    case RTM_WAKEUP:
      return {"wake_delay_ns"};
    case RTM_TIMER:
      return {"fire_delay_ns"};
    case RTM_ROUNDTRIP:
    case RTM_REQUEST:
      return {"reply_delay_ns"};
    case RTM_CYCLE:
      return {"request_delay_ns", "respond_delay_ns"};
    case RTM_CHAIN:
    case RTM_DISCOVERY:
      return {};
  }
  return {};
}

// Whether a chain or a discovery, which need no column in particular, has this one.
bool is_said_of(const std::string& name, const rtm_run& run) {
  const bool of_all = name == "match_delay_ns" || name == "message_delay_ns" || name == "fate";
  return is_edge(name, run) || (of_all && run.measurement == RTM_DISCOVERY);
}

// Cells of a line, without the blanks and the quotes around them.
Cells split(std::string line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  Cells cells{""};
  for (const char c : line) {
    if (c == ',')
      cells.emplace_back();
    else if (c != ' ' && c != '\t')
      cells.back() += c;
  }
  for (std::string& cell : cells)
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
  return cells;
}

// Where a value stands, for messages.
struct Place {
  const char* file;
  std::size_t line;
  std::string column;

  SetupError error(const std::string& value, const std::string& message, const std::string& remedy) const {
    return SetupError("script " + column, value,
                      std::string(file) + ":" + std::to_string(line) + ": " + message, remedy);
  }
};

std::int64_t delay(const std::string& text, const Column& column, const rtm_run& run, const Place& place) {
  if (text.empty()) {
    if (column.never) return kNever;
    throw place.error(text, "is empty, but a sleep always ends", "give a number of nanoseconds");
  }
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size())
    throw place.error(text, "is not a whole number of nanoseconds", "give an integer, e.g. 25000");
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  const bool one_shot = run.measurement == RTM_TIMER && run.timer_mode == RTM_ONE_SHOT;
  const std::int64_t least = !column.negative ? 0
                             : one_shot       ? -run.period_ns
                                              : -ScriptedClock::kFirstReleaseNs;
  if (value < least || value > kMost)
    throw place.error(
        text, "must be from " + std::to_string(least) + " to " + std::to_string(kMost),
        one_shot && column.negative ? "a shot cannot fire before it is armed" : "correct the script");
  return value;
}

Fate fate(const std::string& text, const Place& place) {
  if (text.empty() || text == "ok") return Fate::ok;
  if (text == "duplicate") return Fate::duplicate;
  if (text == "corrupt") return Fate::corrupt;
  throw place.error(text, "is not a fate", "use ok, duplicate or corrupt; empty means ok");
}

const Column* find(const std::string& name) {
  const auto* column =
      std::find_if(std::begin(kColumns), std::end(kColumns), [&](const Column& c) { return name == c.name; });
  return column == std::end(kColumns) ? nullptr : column;
}

std::string known_columns(const rtm_run& run) {
  std::string known = "known: ";
  for (const Column& column : kColumns) known += std::string(column.name) + ", ";
  if (run.measurement == RTM_DISCOVERY) known += "p0>p1 of any two participants, ";
  if (run.measurement == RTM_ROUNDTRIP) known += "ping>subscriber2 and so on, ";
  return known + "fate";
}

void check_header(const Cells& names, const rtm_run& run, const std::string& path) {
  for (const std::string& name : names) {
    const Place place{path.c_str(), 1, name};
    if (find(name) == nullptr && name != "fate" && !is_edge(name, run))
      throw place.error(name, "is not a column of a script", known_columns(run));
    if (std::count(names.begin(), names.end(), name) > 1) throw place.error(name, "stands twice", "keep one");
  }
  for (const std::string& name : needed(run))
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw Place{path.c_str(), 1, name}.error("", "is missing", "this measurement needs the column " + name);
  const auto says = [&](const std::string& name) { return is_said_of(name, run); };
  if (needed(run).empty() && std::none_of(names.begin(), names.end(), says))
    throw kOptions.script.error(path, "has no column of this measurement",
                                run.measurement == RTM_CHAIN
                                    ? "give one for a stage and one that hears it: a>b"
                                    : "give match_delay_ns, message_delay_ns, fate, or a pair's: p0>p1");
}

}  // namespace

Script::Script(const rtm_run& run) : path_(kOptions.script.of(run)) {
  if (path_.empty()) {
    rows_.emplace_back();
    return;
  }
  std::ifstream file(path_);
  std::string line;
  if (!file || !std::getline(file, line))
    throw kOptions.script.error(path_, "cannot be read, or is empty", "give a CSV file with a header line");
  if (line.rfind("\xEF\xBB\xBF", 0) == 0) line.erase(0, 3);  // a byte order mark, as spreadsheets write it
  const Cells names = split(line);
  check_header(names, run, path_);
  for (const std::string& name : names)
    if (is_edge(name, run)) edges_.push_back(name);
  for (std::size_t number = 2; std::getline(file, line); ++number) {
    const Cells cells = split(line);
    if (cells.size() == 1 && cells[0].empty() && names.size() > 1) continue;  // an empty line
    if (cells.size() != names.size())
      throw Place{path_.c_str(), number, "row"}.error(
          line,
          "has " + std::to_string(cells.size()) + " cells, the header has " + std::to_string(names.size()),
          "give every column a cell, if an empty one");
    Row row;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Place place{path_.c_str(), number, names[i]};
      if (is_edge(names[i], run))
        row.edges.push_back(delay(cells[i], kEdge, run, place));
      else if (const Column* column = find(names[i]))
        row.*(column->value) = delay(cells[i], *column, run, place);
      else
        row.fate = fate(cells[i], place);
    }
    rows_.push_back(row);
  }
  if (rows_.empty())
    throw kOptions.script.error(path_, "has a header but no rows", "add a row for each release");
  never_fires_ =
      std::all_of(rows_.begin(), rows_.end(), [](const Row& r) { return r.fire_delay_ns == kNever; });
}

std::size_t Script::edge(const std::string& name) const {
  const auto found = std::find(edges_.begin(), edges_.end(), name);
  return found == edges_.end() ? kNone : static_cast<std::size_t>(found - edges_.begin());
}

void Script::refuse_others(const std::vector<std::string>& there) const {
  constexpr std::size_t kNamed = 8;
  for (const std::string& name : edges_) {
    if (std::find(there.begin(), there.end(), name) != there.end()) continue;
    std::string remedy = there.empty() ? "leave the column out: it has none" : "choose among ";
    for (std::size_t i = 0; i < std::min(there.size(), kNamed); ++i)
      remedy += (i == 0 ? "" : ", ") + there[i];
    if (there.size() > kNamed) remedy += " and " + std::to_string(there.size() - kNamed) + " more";
    throw Place{path_.c_str(), 1, name}.error(name, "is no edge of this run", remedy);
  }
}

}  // namespace rtmeter::null
