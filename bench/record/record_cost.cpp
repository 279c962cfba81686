// What a record costs on the measured path: a clock reading, and a clock reading with record(), in turn.
// Prints one JSON object of raw costs, ns; bench/record_cost.py makes medians and intervals of them.
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "json/json.hpp"
#include "log/log_writer.hpp"
#include "log/recorder.hpp"
#include "rtmeter/clock.hpp"

namespace {

using namespace rtmeter;

constexpr int kBatches = 4001, kPerBatch = 32;
constexpr int kWakeUps = 2001;
constexpr std::int64_t kPeriodNs = 1'000'000;
constexpr std::size_t kColumns = 4, kRingRows = 1 << 18;  // holds all rows: the writer's speed plays no part

class Costs {
 public:
  explicit Costs(Recorder& recorder) : recorder_(recorder) {}

  // Back to back: mean of a batch, caches warm.
  void measure_warm() {
    for (int i = 0; i < kBatches; ++i) {
      add("stamp_warm", batch([&] { stamp(); }));
      add("stamp_and_record_warm", batch([&] { stamp(), recorder_.record(row_); }));
    }
  }

  // Once a millisecond, as a 1 kHz loop records: single costs, caches as the sleep left them. The control
  // writes the same bytes with no recorder: what is left of a row when nothing keeps it.
  void measure_after_sleep() {
    static constexpr const char* kNames[] = {"stamp_after_sleep", "stamp_and_write_after_sleep",
                                             "stamp_and_record_after_sleep"};
    std::int64_t release_ns = clock_.now_ns();
    for (int i = 0; i < 3 * kWakeUps; ++i) {
      const int which = (i + i / 3) % 3;  // each first, second and third in turn
      clock_.sleep_until_ns(release_ns += kPeriodNs);
      const std::int64_t begin_ns = clock_.now_ns();
      stamp();
      if (which == 1) write();
      if (which == 2) recorder_.record(row_);
      add(kNames[which], static_cast<double>(clock_.now_ns() - begin_ns));
    }
  }

  Json to_json() const { return costs_; }

 private:
  void stamp() { row_[1] = clock_.now_ns(); }
  void write() {
    for (const std::int64_t value : row_) *next_++ = value;
    __builtin_prefetch(const_cast<std::int64_t*>(next_), 1);
  }

  template <typename Step>
  double batch(Step step) {
    const std::int64_t begin_ns = clock_.now_ns();
    for (int i = 0; i < kPerBatch; ++i) step();
    return static_cast<double>(clock_.now_ns() - begin_ns) / kPerBatch;
  }

  void add(const std::string& name, double ns) { costs_[name].push(ns); }

  const std::atomic<bool> never_{false};
  MonotonicClock clock_{never_};
  Recorder& recorder_;
  std::int64_t row_[kColumns] = {0, 0, kAbsent, kServed};
  std::vector<std::int64_t> written_ = std::vector<std::int64_t>((kWakeUps + 1) * kColumns, 1);
  volatile std::int64_t* next_ = written_.data();
  Json costs_ = Json::object();
};

}  // namespace

int main() {
  const std::string path =
      std::filesystem::temp_directory_path() / ("rtmeter-bench-" + std::to_string(getpid()) + ".rtlog");
  const Json column(Json::Object{{"name", "c"}, {"unit", "ns"}});
  Json header = Json::object();
  header["columns"] = Json(Json::Array(kColumns, column));
  LogWriter log(path, header);
  std::filesystem::remove(path);  // the file lasts as long as it is open
  Recorder recorder(log, kColumns, kRingRows, WhenFull::count, {});
  recorder.start({});
  Costs costs(recorder);
  costs.measure_warm();
  costs.measure_after_sleep();
  recorder.finish();
  std::puts(costs.to_json().dump().c_str());
  return recorder.overflow() == 0 && !recorder.failed() ? 0 : 1;
}
