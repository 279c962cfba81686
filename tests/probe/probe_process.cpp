#include "probe_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace rtmeter::testing_help {
namespace {

// Does not return. A foreign program is run by its emulator.
void become(const std::string& program, const std::string& config_path) {
#ifdef RTMETER_EMULATOR
  execlp(RTMETER_EMULATOR, RTMETER_EMULATOR, program.c_str(), "--config", config_path.c_str(), nullptr);
#else
  execl(program.c_str(), program.c_str(), "--config", config_path.c_str(), nullptr);
#endif
  _exit(127);
}

}  // namespace

Folder::Folder() : path(testing::TempDir() + "rtmeter-probe-" + std::to_string(getpid())) {
  std::filesystem::create_directories(path);
}

Folder::~Folder() { std::filesystem::remove_all(path); }

Json probe_config(const char* measurement, std::int64_t samples, Json::Object more) {
  Json::Object all = {{"version", 1},           {"measurement", measurement},
                      {"period_ns", 1'000'000}, {"samples", samples},
                      {"warm_up", 50},          {"session", "test-" + std::to_string(getpid())}};
  for (auto& entry : more) all.push_back(std::move(entry));
  return Json(std::move(all));
}

Json option(const char* key, const char* value) { return Json(Json::Object{{key, value}}); }

ProbeProcess::ProbeProcess(const std::string& program, const Folder& folder, const std::string& name,
                           Json config, const std::vector<std::string>& environment)
    : errors_path_(folder.path + "/" + name + ".stderr") {
  const std::string config_path = folder.path + "/" + name + ".json";
  const std::string log_path = folder.path + "/" + name + ".rtlog";
  std::filesystem::remove(log_path);
  config["log"] = log_path;
  std::ofstream(config_path) << config.dump();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  pid_ = fork();
  if (pid_ == 0) {
    alarm(240);  // no run of a test takes seconds, however slow the machine
    const int errors = open(errors_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(ends[1], STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    for (const std::string& variable : environment) putenv(const_cast<char*>(variable.c_str()));
    become(program, config_path);
  }
  close(ends[1]);
  output_ = ends[0];
}

ProbeProcess::~ProbeProcess() {
  close(output_);
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Json ProbeProcess::next_line() {
  for (;;) {
    const auto end = buffered_.find('\n');
    if (end != std::string::npos) {
      const std::string line = buffered_.substr(0, end);
      buffered_.erase(0, end + 1);
      return Json::parse(line, "status line");
    }
    char part[4096];
    const ssize_t bytes = read(output_, part, sizeof part);
    if (bytes <= 0) return {};
    buffered_.append(part, static_cast<std::size_t>(bytes));
  }
}

Json ProbeProcess::next_event(const std::string& event) {
  for (Json line = next_line(); !line.is_null(); line = next_line()) {
    if (line.find("event")->as_string() == event) return line;
  }
  return {};
}

void ProbeProcess::interrupt() const { kill(pid_, SIGINT); }

int ProbeProcess::wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool ProbeProcess::says(const std::string& text) const {
  for (int i = 0; i < 24000; ++i) {
    siginfo_t ended{};
    waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (errors().find(text) != std::string::npos) return true;
    if (ended.si_pid == pid_) return false;
    usleep(10000);
  }
  return false;
}

std::string ProbeProcess::errors() const {
  std::ostringstream text;
  text << std::ifstream(errors_path_).rdbuf();
  return text.str();
}

}  // namespace rtmeter::testing_help
