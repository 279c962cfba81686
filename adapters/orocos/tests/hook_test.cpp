// A component that throws in its hook ends the run with an error that names component, hook and words.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "orocos.hpp"

namespace rtmeter_orocos {
namespace {

// The core's callbacks, of which one throws after some calls, as a user's hook may.
struct Trap {
  rtm_timer_spec spec;
  rtm_on_message on_message;
  void* user;
  int calls;
};

void throw_if_due(Trap* trap) {
  if (--trap->calls == 0) throw std::runtime_error("out of range");
}

class Trapped : public Orocos {
 public:
  explicit Trapped(const rtm_run& run) : Orocos(run) {}

  void* create_timer(void* node, const rtm_timer_spec& spec, rtm_timer_traits& traits) override {
    trap_.spec = spec;
    trap_.calls = 20;
    rtm_timer_spec trapped = spec;
    trapped.user = &trap_;
    trapped.on_fire = [](void* user, const rtm_fire* fire) {
      auto* trap = static_cast<Trap*>(user);
      throw_if_due(trap);
      trap->spec.on_fire(trap->spec.user, fire);
    };
    return Orocos::create_timer(node, trapped, traits);
  }

  void* create_subscriber(void* node, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    if (topic != "request") return Orocos::create_subscriber(node, topic, on_message, user);
    trap_.on_message = on_message;
    trap_.user = user;
    trap_.calls = 20;
    return Orocos::create_subscriber(
        node, topic,
        [](void* trapped, const rtm_message* message) {
          auto* trap = static_cast<Trap*>(trapped);
          throw_if_due(trap);
          trap->on_message(trap->user, message);
        },
        &trap_);
  }

 private:
  Trap trap_{};
};

// What a run prints and its exit code. In a process of its own: RTT does not start twice in one.
std::pair<std::string, int> run(const std::string& config) {
  const std::string path = testing::TempDir() + "orocos-" + std::to_string(getpid());
  std::ofstream(path) << R"({"version": 1, "period_ns": 1000000, "samples": 100000, "log": ")" << path
                      << R"(.rtlog", )" << config << "}";
  int printed[2];
  if (pipe(printed) != 0) return {"no pipe", -1};
  const pid_t child = fork();
  if (child == 0) {
    dup2(printed[1], STDOUT_FILENO);
    char program[] = "probe", option[] = "--config";
    std::vector<char> file(path.begin(), path.end());
    file.push_back('\0');
    char* arguments[] = {program, option, file.data(), nullptr};
    const int code = rtm_probe_main(3, arguments, rtmeter::adapter_table<Trapped>());
    std::cout.flush();
    _exit(code);
  }
  close(printed[1]);
  std::string text;
  char part[4096];
  for (ssize_t bytes; (bytes = read(printed[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(bytes));
  close(printed[0]);
  int status = -1;
  waitpid(child, &status, 0);
  std::remove(path.c_str());
  std::remove((path + ".rtlog").c_str());
  return {text, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

void expect_error(const std::pair<std::string, int>& ended, const std::string& words) {
  EXPECT_EQ(ended.second, 1);
  EXPECT_NE(ended.first.find(R"("field":"middleware","value":"orocos")"), std::string::npos) << ended.first;
  EXPECT_NE(ended.first.find(words), std::string::npos) << ended.first;
}

TEST(Hook, ThatThrowsInATimerIsNamed) {
  expect_error(run(R"("measurement": "timer", "mode": "periodic")"),
               "component timer threw in its updateHook: out of range");
}

TEST(Hook, ThatThrowsWithoutAThreadIsNamed) {
  expect_error(run(R"("measurement": "timer", "mode": "periodic", "drive": "sleep_then_spin_some")"),
               "component timer threw in its updateHook: out of range");
}

TEST(Hook, ThatThrowsAtAPortIsNamed) {
  expect_error(
      run(R"("measurement": "cycle", "drive": "sleep_then_spin_some", "loss_timeout_ns": 20000000000)"),
      "component b threw in its port callback: out of range");
}

}  // namespace
}  // namespace rtmeter_orocos
