// Daemons that a middleware needs: to find, start and watch them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>

namespace rtmeter_daemon {

struct File {
  explicit File(int descriptor) : fd(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close_now(); }
  void close_now() {
    if (fd >= 0) close(fd);
    fd = -1;
  }
  int fd;
};

// The program's path; empty if there is none in PATH.
inline std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string program = folder;
    program.append("/").append(name);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

// The first page of a file.
inline std::string text_of(int file) {
  std::string text(4096, '\0');
  const ssize_t size = pread(file, &text[0], text.size(), 0);
  text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return text;
}

// Between fork and exec of a daemon: nothing of the measured thread's is inherited, neither policy, CPUs nor
// blocked signals. System calls only, since other threads may hold any lock.
inline void become_ordinary(int output) {
  setsid();
  const sched_param normal{};
  sched_setscheduler(0, SCHED_OTHER, &normal);
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof all);
  sched_setaffinity(0, sizeof all, &all);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
}

// Whether a process lives, without asking: a thread of this name sleeps until it has died, and costs the
// measured thread nothing.
class ProcessWatch {
 public:
  ProcessWatch(const char* name, pid_t pid) {
    if (done_.fd < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0U));
    if (process < 0) {
      gone_.store(errno == ESRCH);
      return;
    }
    thread_ = std::thread(&ProcessWatch::watch, this, process);
    pthread_setname_np(thread_.native_handle(), name);  // here: who lists threads next finds it
  }
  ~ProcessWatch() {
    const std::uint64_t one = 1;
    if (thread_.joinable() && write(done_.fd, &one, sizeof one) == sizeof one) thread_.join();
  }
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  // Measured path.
  bool gone() const noexcept { return gone_.load(std::memory_order_relaxed); }

 private:
  void watch(int process) {
    const File owner(process);
    pollfd ends[] = {{process, POLLIN, 0}, {done_.fd, POLLIN, 0}};
    while (poll(ends, 2, -1) < 0 && errno == EINTR) {
    }
    if (ends[0].revents != 0) gone_.store(true);
  }

  const File done_{eventfd(0, EFD_CLOEXEC)};
  std::atomic<bool> gone_{false};
  std::thread thread_;
};

}  // namespace rtmeter_daemon
