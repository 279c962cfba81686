// The golden logs of spec/golden/: small files that the writer must reproduce, and what a reader must
// find in each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "json/json.hpp"
#include "log/log_writer.hpp"
#include "log/recorder.hpp"
#include "sample_log_file.hpp"

namespace rtmeter::golden {

using testing_help::Row;

// Writes a log and notes what it wrote, frame by frame.
class Author {
 public:
  Author(const std::string& path, const std::string& measurement, const Json& mode, const std::string& role,
         std::vector<std::string> columns)
      : names_(std::move(columns)), header_(header(measurement, mode, role)), meta_(header_),
        log_(path, header_) {}

  // One frame of rows; kAbsent becomes null.
  void rows(const std::vector<Row>& rows) {
    for (const Row& row : rows) log_.append(row.data(), 1);
    log_.flush();
    frames_.push_back(rows);
  }
  void update(const std::string& key, const Json& value) {
    Json object = Json::object();
    object[key] = meta_[key] = value;
    log_.update(object);
  }
  void finish(const std::string& outcome) {
    Json object = Json::object();
    object["outcome"] = meta_["outcome"] = outcome;
    log_.finish(object);
  }

  // What a reader finds if the frames numbered in `lost` are not there.
  Json expected(const std::vector<std::size_t>& lost, const Json& missing) const {
    Json k = Json::array();
    std::vector<Json> columns(names_.size(), Json::array());
    std::int64_t next = 0;
    for (std::size_t frame = 0; frame < frames_.size(); ++frame) {
      const bool whole = std::find(lost.begin(), lost.end(), frame) == lost.end();
      for (const Row& row : frames_[frame]) {
        if (whole) k.push(next);
        for (std::size_t i = 0; whole && i < row.size(); ++i)
          columns[i].push(row[i] == kAbsent ? Json() : row[i]);
        ++next;
      }
    }
    Json json = Json::object();
    json["meta"] = meta_;
    json["k"] = k;
    for (std::size_t i = 0; i < names_.size(); ++i) json["columns"][names_[i]] = columns[i];
    json["missing"] = missing;
    return json;
  }

 private:
  Json header(const std::string& measurement, const Json& mode, const std::string& role) const {
    Json json = Json::parse(R"({"format": "rtmeter-sample-log", "version": 1})", "golden");
    json["measurement"] = measurement;
    json["mode"] = mode;
    json["role"] = role;
    json["columns"] = Json::array();
    for (const std::string& name : names_) {
      Json column = Json::object();
      column["name"] = name;
      column["unit"] = name == "status" ? "code" : name == "sequence" ? "1" : "ns";
      json["columns"].push(column);
    }
    const Json rest = Json::parse(R"({
      "absent": -9223372036854775808,
      "statuses": {"in_flight": 0, "served": 1, "skipped": 2, "lost": 3, "warm_up_flag": 128},
      "warm_up": 2, "samples": 8, "period_ns": 1000000,
      "config": {}, "adapter": {"name": "golden"}, "machine": {"hostname": "golden"},
      "clock": {"id": "scripted", "anchors": {"monotonic_ns": 0, "monotonic_raw_ns": 0, "boottime_ns": 0,
                                              "realtime_ns": 0}}})",
                                  "golden");
    for (const auto& [key, value] : rest.as_object()) json[key] = value;
    return json;
  }

  const std::vector<std::string> names_;
  const Json header_;
  Json meta_;
  LogWriter log_;
  std::vector<std::vector<Row>> frames_;
};

inline constexpr std::int64_t kT0 = 1'000'000'000'000, kPeriod = 1'000'000;
inline constexpr std::int64_t kWarm = kServed | kWarmUpFlag;
inline std::int64_t release(std::int64_t k) { return kT0 + k * kPeriod; }

inline Json wakeup(const std::string& path, const std::vector<std::size_t>& lost, const Json& missing) {
  Author log(path, "wakeup", nullptr, "single", {"release_ns", "wake_ns", "free_ns", "status"});
  log.update("effective", Json::parse(R"({"scheduling": {"policy": "fifo", "priority": 80}})", "golden"));
  log.rows({{release(0), release(0) + 61'005, kAbsent, kWarm},
            {release(1), release(1) + 52'013, kAbsent, kWarm},
            {release(2), release(2) + 2'300'017, kAbsent, kServed},
            {release(3), kAbsent, release(2) + 2'300'400, kSkipped},
            {release(4), kAbsent, release(2) + 2'300'400, kSkipped}});
  log.rows({{release(5), release(5), kAbsent, kServed}, {release(6), release(6) + 1, kAbsent, kServed}});
  log.update("counters", Json::parse(R"({"overflow": 0})", "golden"));
  log.rows({{release(7), release(7) + 71'002, kAbsent, kServed},
            {release(8), release(8) + 58'111, kAbsent, kServed},
            {release(9), kAbsent, kAbsent, kInFlight}});
  log.finish("interrupted");
  return log.expected(lost, missing);
}

inline Json one_shot(const std::string& path) {
  Author log(path, "timer", "one_shot", "single",
             {"armed_before_ns", "armed_after_ns", "callback_ns", "reported_expected_ns",
              "reported_actual_ns", "status"});
  log.rows({{kT0, kT0 + 300, kT0 + 1'052'000, kT0 + 1'000'100, kT0 + 1'051'000, kWarm},
            {kT0 + 2'000'000, kT0 + 2'000'250, kT0 + 2'999'999, kAbsent, kAbsent, kWarm},
            {kT0 + 4'000'000, kT0 + 4'000'310, kAbsent, kAbsent, kAbsent, kLost}});
  log.rows({{kT0 + 9'000'000'000, kT0 + 9'000'000'200, kAbsent, kAbsent, kAbsent, kInFlight}});
  log.finish("interrupted");
  return log.expected({}, Json::array());
}

inline Json periodic(const std::string& path) {
  Author log(
      path, "timer", "periodic", "single",
      {"release_ns", "callback_ns", "reported_expected_ns", "reported_actual_ns", "free_ns", "status"});
  log.rows({{release(0), release(0) + 40'000, release(0), release(0) + 39'000, kAbsent, kWarm},
            {release(1), release(1) - 15, release(1), release(1) - 100, kAbsent, kWarm}});
  log.rows({{release(2), release(2) + 3'500'000, kAbsent, kAbsent, kAbsent, kServed},
            {release(3), kAbsent, kAbsent, kAbsent, release(5) + 500'001, kSkipped}});
  log.finish("complete");
  return log.expected({}, Json::array());
}

inline Json client(const std::string& path) {
  Author log(path, "roundtrip", nullptr, "client",
             {"release_ns", "sent_ns", "received_ns", "free_ns", "status"});
  log.rows({{release(0), release(0) + 50'000, release(0) + 120'000, kAbsent, kWarm},
            {release(1), release(1) + 51'000, release(1) + 131'000, kAbsent, kWarm},
            {release(2), release(2) + 49'000, kAbsent, kAbsent, kLost},
            {release(3), kAbsent, kAbsent, release(502) + 49'000, kSkipped}});
  log.rows({{release(4), release(503) + 48'000, release(503) + 99'000, kAbsent, kServed}});
  log.finish("complete");
  return log.expected({}, Json::array());
}

// Out of order, once twice, and one sequence that the client does not know.
inline Json server(const std::string& path) {
  Author log(path, "roundtrip", nullptr, "server",
             {"sequence", "server_received_ns", "server_sent_ns", "status"});
  log.rows({{1, release(1) + 80'000, release(1) + 82'000, kServed},
            {0, release(1) + 83'000, release(1) + 84'000, kServed}});
  log.rows({{4, release(503) + 70'000, release(503) + 71'000, kServed},
            {4, release(503) + 72'000, release(503) + 73'000, kServed},
            {9, release(508) + 70'000, release(508) + 71'000, kServed}});
  log.finish("complete");
  return log.expected({}, Json::array());
}

inline Json cycle(const std::string& path) {
  Author log(path, "cycle", nullptr, "single",
             {"release_ns", "start_ns", "request_sent_ns", "request_received_ns", "response_sent_ns",
              "response_received_ns", "free_ns", "status"});
  const std::int64_t r = release(0);
  log.rows(
      {{r, r + 5'000, r + 5'100, r + 9'000, r + 9'200, r + 14'000, kAbsent, kWarm},
       {r + kPeriod, r + kPeriod + 4'000, r + kPeriod + 4'100, kAbsent, kAbsent, kAbsent, kAbsent, kLost},
       {r + 2 * kPeriod, kAbsent, kAbsent, kAbsent, kAbsent, kAbsent, r + 501 * kPeriod, kSkipped}});
  log.finish("complete");
  return log.expected({}, Json::array());
}

inline Json discovery(const std::string& path) {
  Author log(path, "discovery", nullptr, "single",
             {"release_ns", "started_ns", "matched_ns", "first_ns", "status"});
  const std::int64_t r = release(0);
  log.rows({{r, r + 120, r + 90'000, r + 91'000, kWarm},
            {r + kPeriod, r + kPeriod + 80, r + kPeriod + 88'000, r + kPeriod + 87'500, kWarm}});
  log.rows({{r + 2 * kPeriod, r + 2 * kPeriod, r + 2 * kPeriod + 400'000, kAbsent, kLost},
            {r + 3 * kPeriod, kAbsent, kAbsent, kAbsent, kInFlight}});
  log.finish("interrupted");
  return log.expected({}, Json::array());
}

// Goals of an action: one whose result came before its feedback, one that is lost, one passed over.
inline Json request(const std::string& path) {
  Author log(
      path, "request", nullptr, "client",
      {"release_ns", "sent_ns", "accepted_ns", "first_feedback_ns", "received_ns", "free_ns", "status"});
  const std::int64_t r = release(0);
  log.rows({{r, r + 900, r + 61'000, r + 74'000, r + 90'000, kAbsent, kWarm},
            {r + kPeriod, r + kPeriod + 700, r + kPeriod + 58'000, kAbsent, r + kPeriod + 88'000, kAbsent,
             kServed}});
  log.rows(
      {{r + 2 * kPeriod, r + 2 * kPeriod + 800, r + 2 * kPeriod + 60'000, kAbsent, kAbsent, kAbsent, kLost},
       {r + 3 * kPeriod, kAbsent, kAbsent, kAbsent, kAbsent, r + 3 * kPeriod + 400'000, kSkipped},
       {r + 4 * kPeriod, r + 4 * kPeriod + 750, kAbsent, kAbsent, kAbsent, kAbsent, kInFlight}});
  log.finish("interrupted");
  return log.expected({}, Json::array());
}

// A round trip with the kernel's stamps; of the second the kernel did not tell when it was sent.
inline Json stamped(const std::string& path) {
  Author log(path, "roundtrip", nullptr, "client",
             {"release_ns", "sent_ns", "received_ns", "free_ns", "kernel_sent_realtime_ns",
              "kernel_received_realtime_ns", "status"});
  constexpr std::int64_t kAhead = 1'790'000'000'000'000'000;  // CLOCK_REALTIME
  const std::int64_t r = release(0), at = r + kAhead;
  log.rows({{r, r + 900, r + 90'000, kAbsent, at + 9'000, at + 71'000, kServed},
            {r + kPeriod, r + kPeriod + 800, r + kPeriod + 88'000, kAbsent, kAbsent, at + kPeriod + 70'000,
             kServed}});
  const auto reading = [](std::int64_t own) {
    return Json(Json::Array{Json(own), Json(own + kAhead), Json(60)});
  };
  log.update("realtime_clock",
             Json(Json::Object{{"id", "CLOCK_REALTIME"},
                               {"readings", Json(Json::Array{reading(r), reading(r + kPeriod)})}}));
  log.finish("complete");
  return log.expected({}, Json::array());
}

// Deltas that wrap around 64 bits.
inline Json extremes(const std::string& path) {
  Author log(path, "wakeup", nullptr, "single", {"release_ns", "wake_ns", "free_ns", "status"});
  log.rows({{INT64_MAX, -1, 0, kServed},
            {INT64_MIN + 1, INT64_MAX, -1, kServed},
            {INT64_MAX, INT64_MIN + 1, 1, kLost}});
  log.rows({{-1, 0, INT64_MAX, kServed | kWarmUpFlag}});
  log.finish("complete");
  return log.expected({}, Json::array());
}

inline void change(const std::string& path, const std::function<void(std::string&)>& edit) {
  std::string bytes = testing_help::file_content(path);
  edit(bytes);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Where the n-th frame of a kind begins.
inline std::size_t frame_at(const std::string& bytes, char kind, int n) {
  std::size_t at = 12;
  while (bytes.at(at + 4) != kind || n-- > 0)
    at += 32 + testing_help::little_endian<std::uint32_t>(bytes, at + 20);
  return at;
}

// The wakeup log as a killed probe leaves it: cut within its last frame of rows.
inline Json torn(const std::string& path) {
  Json expected = wakeup(path, {2}, Json::parse("[[7, null]]", "golden"));
  change(path, [](std::string& bytes) { bytes.resize(frame_at(bytes, 'R', 2) + 50); });
  Json meta = Json::object();
  for (const auto& [key, value] : expected["meta"].as_object())
    if (key != "outcome") meta[key] = value;
  expected["meta"] = meta;
  return expected;
}

// The wakeup log with one bit of the second frame's payload flipped.
inline Json flipped(const std::string& path) {
  Json expected = wakeup(path, {1}, Json::parse("[[5, 6]]", "golden"));
  change(path, [](std::string& bytes) { bytes[frame_at(bytes, 'R', 1) + 40] ^= 0x10; });
  return expected;
}

// The wakeup log with a format version to come.
inline Json future(const std::string& path) {
  wakeup(path, {}, Json::array());
  change(path, [](std::string& bytes) { bytes[8] = 2; });
  Json expected = Json::object();
  expected["error"] = "version 2";
  return expected;
}

struct Golden {
  std::string name;
  Json (*make)(const std::string& path);  // writes the log, returns what a reader must find
};

inline const std::vector<Golden>& all() {
  static const std::vector<Golden> logs = {
      {"wakeup", [](const std::string& path) { return wakeup(path, {}, Json::array()); }},
      {"one-shot", one_shot},
      {"periodic", periodic},
      {"client", client},
      {"server", server},
      {"cycle", cycle},
      {"discovery", discovery},
      {"request", request},
      {"stamped", stamped},
      {"extremes", extremes},
      {"torn", torn},
      {"flipped", flipped},
      {"future", future}};
  return logs;
}

}  // namespace rtmeter::golden
