// The thread that watches a daemon (adapters/common/daemon).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../../adapters/common/daemon/process.hpp"

namespace {

int threads_named(const std::string& name) {
  int found = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string is;
    std::getline(std::ifstream(task.path() / "comm"), is);
    found += is == name ? 1 : 0;
  }
  return found;
}

// The audit lists the threads of a probe as soon as its adapter has started.
TEST(ProcessWatch, HasItsNameFromTheBeginningOn) {
  const rtmeter_daemon::File known(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0U)));
  if (known.fd < 0) GTEST_SKIP() << "no pidfd_open here";
  for (int time = 0; time < 200; ++time) {
    const std::string name = "watch-" + std::to_string(time);
    const rtmeter_daemon::ProcessWatch watch(name.c_str(), getpid());
    ASSERT_EQ(threads_named(name), 1);
    EXPECT_FALSE(watch.gone());
  }
}

}  // namespace
