#include "system/other_clock.hpp"

#include <fcntl.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "errors.hpp"

namespace rtmeter {
namespace {

constexpr const char* kField = "shared_clock";
constexpr const char* kOthers =
    "see which there are (`ls /dev/ptp*`, `ethtool -T INTERFACE`, `rtmeter check`), or give tai";

const std::string kTai = "CLOCK_TAI", kRealtime = "CLOCK_REALTIME";

std::string id_of(const std::string& name) {
  return name == "tai" ? kTai : name == "realtime" ? kRealtime : name;
}

// The clock of an open device (Linux Documentation/driver-api/ptp.rst, clock_gettime(2): dynamic clocks).
clockid_t clock_of(int device) { return static_cast<clockid_t>((~static_cast<unsigned>(device) << 3) | 3U); }

OtherClock::Read reader_of(clockid_t id) {
  return [id](std::int64_t* now_ns) {
    timespec t{};
    if (clock_gettime(id, &t) != 0) return false;
    *now_ns = static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
    return true;
  };
}

int opened(const std::string& path) {
  const int device = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (device >= 0) return device;
  if (errno == EACCES || errno == EPERM)
    throw Failure(kField, path, "may not be opened by this user", "run as root, or `chmod o+r " + path + "`");
  throw Failure(kField, path, errno == ENOENT ? "there is no such PTP hardware clock" : std::strerror(errno),
                kOthers);
}

}  // namespace

OtherClock::OtherClock(const std::string& name)
    : id_(id_of(name)), read_monotonic_(reader_of(CLOCK_MONOTONIC)) {
  if (id_ == name) device_ = opened(name);
  read_ = reader_of(id_ == kTai ? CLOCK_TAI : id_ == kRealtime ? CLOCK_REALTIME : clock_of(device_));
  add();
  if (!failed_) return;
  if (device_ >= 0) close(device_);
  throw Failure(kField, name, "is no PTP hardware clock", kOthers);
}

OtherClock::OtherClock(std::string id, Read read, Read read_monotonic)
    : id_(std::move(id)), read_(std::move(read)), read_monotonic_(std::move(read_monotonic)) {
  add();
}

OtherClock::~OtherClock() {
  if (device_ >= 0) close(device_);
}

void OtherClock::look() {
  const std::lock_guard lock(mutex_);
  std::int64_t now_ns = 0;
  if (failed_ || !read_monotonic_(&now_ns) || now_ns - readings_.back().monotonic_ns < every_ns_) return;
  add();
}

void OtherClock::look_now() {
  const std::lock_guard lock(mutex_);
  if (!failed_) add();
}

// The closest of some: one is interrupted now and then.
void OtherClock::add() {
  constexpr int kAttempts = 16;
  Reading best{0, 0, INT64_MAX};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::int64_t before_ns = 0, other_ns = 0, after_ns = 0;
    failed_ = !read_monotonic_(&before_ns) || !read_(&other_ns) || !read_monotonic_(&after_ns);
    if (failed_) return;
    const std::int64_t span_ns = after_ns - before_ns;
    if (span_ns < best.span_ns) best = {before_ns + span_ns / 2, other_ns, span_ns};
  }
  if (readings_.size() >= kMost) {  // every second one goes, but not the first
    std::size_t kept = 0;
    for (std::size_t i = 0; i < readings_.size(); i += 2) readings_[kept++] = readings_[i];
    readings_.resize(kept);
    every_ns_ *= 2;
  }
  readings_.push_back(best);
}

Json OtherClock::to_json() const {
  const std::lock_guard lock(mutex_);
  Json readings = Json::array();
  for (const Reading& r : readings_)
    readings.push(Json(Json::Array{Json(r.monotonic_ns), Json(r.other_ns), Json(r.span_ns)}));
  timex kernel{};
  const bool known = id_ == kTai && adjtimex(&kernel) >= 0;
  return Json(
      Json::Object{{"id", id_},
                   {"readings", readings},
                   {"utc_offset_s", known ? Json(static_cast<std::int64_t>(kernel.tai)) : Json()},
                   {"synchronised", known ? Json((kernel.status & STA_UNSYNC) == 0) : Json()},
                   {"max_error_us", known ? Json(static_cast<std::int64_t>(kernel.maxerror)) : Json()},
                   {"failed", failed_}});
}

}  // namespace rtmeter
