// A clock beside CLOCK_MONOTONIC: both are read together, again and again, so that stamps of the one can be
// told by the other: of one that two hosts have in common, or by which the kernel stamps. Never on the
// measured path.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "json/json.hpp"

namespace rtmeter {

class OtherClock {
 public:
  // Nanoseconds; false if the clock cannot be read any more.
  using Read = std::function<bool(std::int64_t* now_ns)>;

  // `name`: "tai", "realtime", or the device of a PTP hardware clock, /dev/ptpN. Failure, naming
  // shared_clock, if there is no such clock or it may not be read.
  explicit OtherClock(const std::string& name);
  // A clock of the test's, and its CLOCK_MONOTONIC.
  OtherClock(std::string id, Read read, Read read_monotonic);
  ~OtherClock();
  OtherClock(const OtherClock&) = delete;
  OtherClock& operator=(const OtherClock&) = delete;

  // Reads both if it is time: each second, in long runs more seldom, so that there are never more than kMost
  // readings. Any thread.
  void look();
  // Reads both now.
  void look_now();
  // `shared_clock` and `realtime_clock` of spec/probe.md.
  Json to_json() const;

  static constexpr std::size_t kMost = 512;

 private:
  struct Reading {
    std::int64_t monotonic_ns, other_ns, span_ns;  // the other was read within the span around monotonic_ns
  };
  void add();

  const std::string id_;
  int device_ = -1;
  Read read_, read_monotonic_;
  mutable std::mutex mutex_;
  std::vector<Reading> readings_;
  std::int64_t every_ns_ = 1'000'000'000;
  bool failed_ = false;  // it could be read at first
};

}  // namespace rtmeter
