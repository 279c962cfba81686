#include "probe_process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace rtmeter::testing_help {

ProbeProcess::ProbeProcess(const std::string& program, const std::string& folder, const std::string& name,
                           Json config, const std::vector<std::string>& environment)
    : errors_path_(folder + "/" + name + ".stderr") {
  const std::string config_path = folder + "/" + name + ".json";
  config["log"] = folder + "/" + name + ".rtlog";
  std::ofstream(config_path) << config.dump();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  pid_ = fork();
  if (pid_ == 0) {
    alarm(60);
    const int errors = open(errors_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(ends[1], STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    for (const std::string& variable : environment) putenv(const_cast<char*>(variable.c_str()));
    execl(program.c_str(), program.c_str(), "--config", config_path.c_str(), nullptr);
    _exit(127);
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

void ProbeProcess::interrupt() const { kill(pid_, SIGINT); }

int ProbeProcess::wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string ProbeProcess::last_error_line() const {
  std::ifstream file(errors_path_);
  std::string last;
  for (std::string line; std::getline(file, line);) last = line;
  return last;
}

}  // namespace rtmeter::testing_help
