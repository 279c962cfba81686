// Tests of settings run in a forked child: what it sets, moves into or gives up ends with it.
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <string>

#include "errors.hpp"
#include "system/affinity.hpp"
#include "system/limits.hpp"

#define EXPECT_CONTAINS(text, part) EXPECT_PRED_FORMAT2(testing::IsSubstring, part, text)

namespace rtmeter::testing_help {

// What the body returned in a child; or how the child ended if it did not return.
inline std::string in_child(const std::function<std::string()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    std::string said;
    try {
      said = body();
    } catch (const std::exception& e) {
      said = std::string("threw: ") + e.what();
    }
    const bool whole = write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(whole ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char part[4096];
  for (ssize_t bytes; (bytes = read(ends[0], part, sizeof part)) > 0;)
    said.append(part, static_cast<std::size_t>(bytes));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? said
                     : "the child ended with wait status " + std::to_string(status) + " after: " + said;
}

// "ok", or the failure as a user would see it.
inline std::string outcome_of(const std::function<void()>& setting) {
  try {
    setting();
    return "ok";
  } catch (const Failure& failure) {
    return failure.field() + " = " + failure.value() + ": " + failure.what() + ". " + failure.remedy();
  }
}

inline void limit(int resource, rlim_t value) {
  const rlimit both{value, value};
  if (setrlimit(static_cast<decltype(RLIMIT_RTPRIO)>(resource), &both) != 0)
    throw std::runtime_error("setrlimit");
}

// Becomes nobody, for the rest of the child's life.
inline void drop_privileges() {
  constexpr unsigned kNobody = 65534;
  if (geteuid() != 0) return;
  if (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0)
    throw std::runtime_error("setuid");
}

}  // namespace rtmeter::testing_help

// Skips the test where the process is confined: SCHED_DEADLINE takes no such thread.
#define NEEDS_EVERY_CPU()                                                                   \
  if (rtmeter::get_affinity(0) != rtmeter::online_cpus()) {                                 \
    GTEST_SKIP() << "needs every CPU of the machine, and this process is confined to some"; \
  }

// Skips the test unless the process holds the capability.
#define NEEDS_CAPABILITY(capability)                                   \
  if (!rtmeter::has_capability(capability)) {                          \
    GTEST_SKIP() << "needs " #capability ", which this process lacks"; \
  }
