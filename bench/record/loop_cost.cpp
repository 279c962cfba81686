// What a job of librtmeter costs: the wake-up, its end and the row, by the C ABI of the shared library.
// Prints one JSON object of raw costs, ns a job; bench/loop_cost.py makes medians and intervals of them.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "rtmeter/clock.hpp"
#include "rtmeter/loop.h"

namespace {

constexpr int kBatches = 4001, kPerBatch = 32;
constexpr std::int64_t kPeriodNs = 1'000'000;  // its ring holds all rows: the writer's speed plays no part

void print(const char* name, const std::vector<double>& values, const char* end) {
  std::printf("\"%s\": [", name);
  for (std::size_t i = 0; i < values.size(); ++i) std::printf("%s%.4f", i > 0 ? ", " : "", values[i]);
  std::printf("]%s", end);
}

}  // namespace

int main() {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("rtmeter-bench-" + std::to_string(getpid()));
  rtm_loop_options options = RTM_LOOP_OPTIONS;
  options.folder = folder.c_str();
  options.deadline_ns = std::int64_t{1} << 55;  // nothing is late
  const std::atomic<bool> never{false};
  rtmeter::MonotonicClock clock(never);
  char error[300] = "";
  std::vector<double> stamps, jobs;
  std::int64_t due_ns = clock.now_ns();
  rtm_loop* loop = nullptr;
  for (int batch = 0; batch < kBatches; ++batch) {
    if (batch % 500 == 0) {
      if (rtm_loop_close(loop, error, sizeof error) != 0) return std::fprintf(stderr, "%s\n", error), 1;
      loop = rtm_loop_open("cost", kPeriodNs, &options, error, sizeof error);
      if (loop == nullptr) return std::fprintf(stderr, "%s\n", error), 1;
    }
    std::int64_t begin_ns = clock.now_ns();
    for (int i = 0; i < kPerBatch; ++i) {
      [[maybe_unused]] volatile std::int64_t first = clock.now_ns();
      [[maybe_unused]] volatile std::int64_t second = clock.now_ns();
    }
    stamps.push_back(static_cast<double>(clock.now_ns() - begin_ns) / kPerBatch);
    begin_ns = clock.now_ns();
    for (int i = 0; i < kPerBatch; ++i) {
      rtm_loop_wake(loop, due_ns);
      rtm_loop_done(loop);
      due_ns += kPeriodNs;
    }
    jobs.push_back(static_cast<double>(clock.now_ns() - begin_ns) / kPerBatch);
  }
  rtm_loop_close(loop, error, sizeof error);
  std::filesystem::remove_all(folder);
  std::printf("{");
  print("two_stamps", stamps, ", ");
  print("job", jobs, "}\n");
  return 0;
}
