#include "probe/instrument.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "log/recorder.hpp"
#include "rtmeter/clock.hpp"

namespace rtmeter {
namespace {

constexpr int kBatches = 101, kPerBatch = 32;

// Median over batches of the mean cost of one step, ns.
template <typename Step>
double median_cost_ns(Clock& clock, Step&& step) {
  std::vector<double> costs;
  for (int batch = 0; batch < kBatches; ++batch) {
    const std::int64_t begin_ns = clock.now_ns();
    for (int i = 0; i < kPerBatch; ++i) step();
    costs.push_back(static_cast<double>(clock.now_ns() - begin_ns) / kPerBatch);
  }
  std::nth_element(costs.begin(), costs.begin() + kBatches / 2, costs.end());
  return costs[kBatches / 2];
}

}  // namespace

Json measure_instrument(LogWriter& log, std::size_t columns) {
  const std::atomic<bool> never{false};
  MonotonicClock clock(never);
  Recorder scratch(log, columns, kBatches * kPerBatch, WhenFull::count, {});  // never started: fills up
  std::vector<std::int64_t> row(columns);
  const double stamp_ns = median_cost_ns(clock, [&] { row[0] = clock.now_ns(); });
  const double record_ns = median_cost_ns(clock, [&] {
    row[0] = clock.now_ns();
    scratch.record(row.data());
  });
  return Json(Json::Object{{"stamp_ns", stamp_ns}, {"record_ns", record_ns}});
}

}  // namespace rtmeter
