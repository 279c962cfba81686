// The two sizes of a test: `reduced` in `make test`, `full` with RTMETER_FULL=1 (`make test-full`).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

// sized("rows", 100'000, 10'000'000): the size to run at. Says what it reduced; `make test` lists these
// lines at its end.
inline std::int64_t sized(const char* what, std::int64_t reduced, std::int64_t full) {
  const char* wish = std::getenv("RTMETER_FULL");
  if (wish != nullptr && std::string(wish) == "1") return full;
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::cout << "[reduced] " << test->test_suite_name() << "." << test->name() << ": " << reduced << " of "
            << full << " " << what << "\n";
  return reduced;
}
