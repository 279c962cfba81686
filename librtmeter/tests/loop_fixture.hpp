// A loop whose stamps are scripted, and what was recorded of it.
#pragma once

#include <gtest/gtest.h>

#include "loop.hpp"
#include "loop_folder.hpp"

namespace rtmeter {

using namespace testing_help;

inline constexpr std::int64_t kT = 1'000'000, kT0 = 5'000'000'000;

inline std::int64_t t0_ns = kT0;  // where the library sleeps, that of its grid

class LoopTest : public testing::Test {
 protected:
  LoopTest() {
    folder_ = directory_ / "loops";
    t0_ns = kT0;
    options_.folder = folder_.c_str();
    options_.warm_up_ns = 2 * kT;
    options_.on_late = [](void* context, std::int64_t k, std::int64_t release_ns, std::int64_t stamp_ns) {
      static_cast<LoopTest*>(context)->late_.push_back({k, release_ns, stamp_ns});
    };
    options_.context = this;
  }
  // The rows with their k: release, wake, done, free, status.
  template <typename Work>
  std::vector<Row> record(Work&& work) {
    Loop loop("arm", kT, options_);
    work(loop);
    loop.end(end_ns_);
    path_ = loop.folder();
    return rows_of_part(path_, "whole");
  }
  TemporaryDirectory directory_;
  std::string folder_, path_;
  rtm_loop_options options_ = RTM_LOOP_OPTIONS;
  std::int64_t end_ns_ = 0;  // before any deadline
  std::vector<Row> late_;
};

inline std::int64_t at(std::int64_t k, std::int64_t ns = 0) { return t0_ns + k * kT + ns; }

}  // namespace rtmeter
