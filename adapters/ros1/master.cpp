#include "master.hpp"

#include <arpa/inet.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmlrpcpp/XmlRpc.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "../common/session.hpp"
#include "../common/text.hpp"
#include "options.hpp"

namespace rtmeter_ros1 {
namespace {

using rtmeter_daemon::File;

constexpr int kStartTimeoutMs = 30000, kEndTimeoutMs = 5000, kLookMs = 20, kPorts = 3;

// A port of the address that nobody listens at just now.
std::string free_port(const std::string& ip) {
  const File one(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, ip.c_str(), &address.sin_addr);
  socklen_t size = sizeof address;
  if (bind(one.fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockname(one.fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw rtmeter::SetupError("rosmaster", "", std::strerror(errno), "start rosmaster, set ROS_MASTER_URI");
  return std::to_string(ntohs(address.sin_port));
}

std::string uri_of(const std::string& address, const std::string& port) {
  return "http://" + address + ":" + port + "/";
}

// This process's environment for a master at that address that writes no files.
std::vector<std::string> masters_environment(const std::string& ip) {
  std::vector<std::string> all{"ROS_IP=" + ip, "ROS_LOG_DIR=/dev/null/none"};
  for (char** one = environ; *one != nullptr; ++one)
    if (std::strncmp(*one, "ROS_IP=", 7) != 0 && std::strncmp(*one, "ROS_HOSTNAME=", 13) != 0 &&
        std::strncmp(*one, "ROS_LOG_DIR=", 12) != 0)
      all.emplace_back(*one);
  return all;
}

// Said by a rosmaster that runs on without its port.
bool port_was_taken(const File& output) {
  return rtmeter_daemon::text_of(output.fd).find(std::strerror(EADDRINUSE)) != std::string::npos;
}

void wait_a_little() { usleep(kLookMs * 1000); }

}  // namespace

bool all_agree(const rtm_run& run) {
  return run.measurement == RTM_DISCOVERY || run.measurement == RTM_CHAIN;
}

Master::Master(const rtm_run& run, const std::string& address) {
  const bool is_told = !all_agree(run) && (run.role == RTM_ROLE_CLIENT || run.role == RTM_ROLE_BESIDE);
  const std::string endpoint = is_told ? kOptions.endpoint.of(run) : "";
  const std::string usual = rtmeter_common::environment("ROS_MASTER_URI");
  if (!endpoint.empty()) {
    if (!answers(endpoint))
      throw kOptions.endpoint.error(
          endpoint, "no rosmaster answers there",
          "see whether the server still runs; on two hosts ROS_MASTER_URI must be one that both reach");
  } else if (usual.empty() || !answers(usual)) {
    if (is_told)
      throw kOptions.endpoint.error("",
                                    usual.empty()
                                        ? "no rosmaster is known: ROS_MASTER_URI is not set"
                                        : "no rosmaster is known: none answers at ROS_MASTER_URI, " + usual,
                                    "give the endpoint that the server states, or set ROS_MASTER_URI");
    start(address.empty() ? "127.0.0.1" : address,
          all_agree(run) ? std::to_string(rtmeter_common::port_of(run)) : "");
  }
  std::string command;
  std::getline(std::ifstream("/proc/" + std::to_string(pid_) + "/cmdline"), command);
  if (command.find("rosmaster") != std::string::npos)  // else it is another host's
    watch_.reset(new rtmeter_daemon::ProcessWatch("ros-watch", pid_));
}

std::shared_ptr<Master> Master::of_process(const rtm_run& run, const std::string& address) {
  static const auto one = std::make_shared<Master>(run, address);
  return one;
}

Master::~Master() {
  watch_.reset();
  // Others of the session may be a moment behind.
  for (int waited_ms = 0;
       child_ > 0 && users_ >= 0 && flock(users_, LOCK_EX | LOCK_NB) != 0 && waited_ms < kEndTimeoutMs;
       waited_ms += kLookMs)
    wait_a_little();
  end_child(SIGTERM);
}

void Master::end_child(int signal) {
  if (child_ <= 0) return;
  kill(child_, signal);
  for (int waited_ms = 0; waitpid(child_, nullptr, WNOHANG) == 0; waited_ms += kLookMs) {
    if (waited_ms == kEndTimeoutMs) kill(child_, SIGKILL);
    wait_a_little();
  }
  child_ = 0;
}

bool Master::answers(const std::string& uri) {
  char host[256];
  int port = 0;
  if (std::sscanf(uri.c_str(), "http://%255[^:/]:%d", host, &port) != 2) return false;
  XmlRpc::XmlRpcClient client(host, port, "/");
  XmlRpc::XmlRpcValue parameters, result;
  parameters[0] = "/rtmeter";
  if (!client.execute("getPid", parameters, result) || client.isFault() || result.size() != 3) return false;
  uri_ = uri;
  pid_ = static_cast<int&>(result[2]);
  return true;
}

void Master::start(const std::string& address, const std::string& agreed) {
  const std::string program = rtmeter_daemon::find_program("rosmaster");
  if (program.empty())
    throw rtmeter::SetupError(
        "rosmaster", rtmeter_common::environment("ROS_MASTER_URI"),
        "no master answers at ROS_MASTER_URI, and there is no program rosmaster to start",
        "apt install python3-rosmaster, or set ROS_MASTER_URI to a master that runs");
  if (!agreed.empty()) {
    users_ = open(program.c_str(), O_RDONLY | O_CLOEXEC);  // closed by the end of the process
    while (flock(users_, LOCK_SH) != 0 && errno == EINTR) {
    }
  }
  std::string said;
  for (int left = kPorts; left > 0; --left) {  // a port that was free may be another's by now
    if (!agreed.empty() && answers(uri_of(address, agreed))) return;
    const File output(memfd_create("rosmaster.log", MFD_CLOEXEC));
    if (starts(program, address, agreed.empty() ? free_port(address) : agreed, output)) return;
    said = (child_ == 0 ? "it ended at once: " : "it does not answer: ") + rtmeter_daemon::text_of(output.fd);
    const bool was_taken = port_was_taken(output) || (pid_ > 0 && pid_ != child_);
    end_child(SIGKILL);
    if (!was_taken) break;
  }
  throw rtmeter::SetupError("rosmaster", program, said, "start it yourself to see why");
}

bool Master::starts(const std::string& program, const std::string& address, const std::string& port,
                    const File& output) {
  const std::string uri = uri_of(address, port);
  const std::vector<std::string> variables = masters_environment(address);
  std::vector<const char*> pointers;
  pointers.reserve(variables.size() + 1);
  for (const std::string& one : variables) pointers.push_back(one.c_str());
  pointers.push_back(nullptr);
  const char* const arguments[] = {"rosmaster", "--core", "-p", port.c_str(), nullptr};

  const pid_t parent = getpid();
  child_ = fork();
  if (child_ < 0)
    throw rtmeter::SetupError("rosmaster", program, std::string("fork: ") + std::strerror(errno),
                              "raise the limit of processes (ulimit -u), or start it yourself");
  if (child_ == 0) {  // system calls only, since other threads may hold any lock
    rtmeter_daemon::become_ordinary(output.fd);
    syscall(SYS_close_range, 3U, ~0U, 0U);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent)
      execve(program.c_str(), const_cast<char**>(arguments), const_cast<char**>(pointers.data()));
    _exit(127);
  }
  for (int waited_ms = 0; waited_ms < kStartTimeoutMs; waited_ms += kLookMs) {
    if (waitpid(child_, nullptr, WNOHANG) !=
        0) {  // looked at first: another's may answer at the port it lost
      child_ = 0;
      return false;
    }
    if (port_was_taken(output)) return false;
    if (answers(uri)) return pid_ == child_;  // else another's was there first
    wait_a_little();
  }
  return false;
}

}  // namespace rtmeter_ros1
