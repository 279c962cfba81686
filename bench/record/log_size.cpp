// Writes a log like that of wake-ups at 1 kHz: latency log-normal around 60 us, a frame every half second.
// Prints what writing took; bench/log_size.py looks at the file.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "errors.hpp"
#include "json/json.hpp"
#include "log/log_writer.hpp"
#include "log/recorder.hpp"

namespace {

using namespace rtmeter;

constexpr std::int64_t kPeriodNs = 1'000'000, kFrameRows = 500, kFrames = 1200;

Json header() {
  Json json(Json::Object{{"format", "rtmeter-sample-log"}, {"version", 1}, {"measurement", "wakeup"}});
  for (const char* name : {"release_ns", "wake_ns", "free_ns", "status"}) {
    json["columns"].push(Json(Json::Object{{"name", name}}));
  }
  return json;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fputs("usage: rtmeter-bench-log_size LOG (written anew)\n", stderr);
    return 1;
  }
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> latency_ns(std::log(60'000.0), 0.25);
  std::vector<std::int64_t> rows;
  for (std::int64_t k = 0; k < kFrames * kFrameRows; ++k) {
    const std::int64_t release_ns = 1'000'000'000'000 + k * kPeriodNs;
    const std::int64_t wake_ns = release_ns + static_cast<std::int64_t>(latency_ns(random));
    rows.insert(rows.end(), {release_ns, wake_ns, kAbsent, kServed});
  }
  LogWriter log(argv[1], header());
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t frame = 0; frame < kFrames; ++frame) {
    log.append(rows.data() + frame * kFrameRows * 4, kFrameRows);
    log.flush();
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  log.finish(Json::object());
  std::printf("%s\n", Json(Json::Object{{"rows", kFrames * kFrameRows},
                                        {"ns_a_row", took.count() / (kFrames * kFrameRows)}})
                          .dump()
                          .c_str());
  return 0;
} catch (const Failure& failure) {
  std::fprintf(stderr, "%s: %s\n", failure.value().c_str(), failure.what());
  return 1;
}
