#include "roudi.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "../common/daemon/process.hpp"
#include "rtmeter/adapter.hpp"

namespace rtmeter_iceoryx {
namespace {

using rtmeter_daemon::become_ordinary;
using rtmeter_daemon::File;
using rtmeter_daemon::find_program;
using rtmeter_daemon::ProcessWatch;
using rtmeter_daemon::text_of;

constexpr char kSocket[] = "/tmp/roudi", kLock[] = "/tmp/iox-unique-roudi.lock";
constexpr int kStartTimeoutMs = 20000, kEndTimeoutMs = 5000, kLookMs = 10;

// Chunks for the usual payloads, each with room for what the adapter sends beside it. RouDi writes to all of
// them when it starts: the largest are there only for a run that wants them, which are as many as others get.
std::string config_of(std::uint32_t largest_chunk) {
  return "[general]\nversion = 1\n[[segment]]\n"
         "[[segment.mempool]]\nsize = 1088\ncount = 1024\n"
         "[[segment.mempool]]\nsize = 32832\ncount = 256\n"
         "[[segment.mempool]]\nsize = 131136\ncount = 128\n"
         "[[segment.mempool]]\nsize = 1048640\ncount = 32\n"
         "[[segment.mempool]]\nsize = " +
         std::to_string(largest_chunk) + "\ncount = 16\n";
}

rtmeter::SetupError error(const std::string& value, const std::string& message, const std::string& remedy) {
  return rtmeter::SetupError("iox-roudi", value, message, remedy);
}

rtmeter::SetupError system_error(const char* what) {
  return error(what, std::strerror(errno), "start iox-roudi yourself, then measure again");
}

bool answers() {
  const File one(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, kSocket, sizeof kSocket);
  return connect(one.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// The process that holds RouDi's own lock; 0 if the kernel does not tell.
pid_t holder_of_lock() {
  struct stat facts{};
  if (stat(kLock, &facts) != 0) return 0;
  char wanted[64];
  std::snprintf(wanted, sizeof wanted, "%02x:%02x:%lu", major(facts.st_dev), minor(facts.st_dev),
                static_cast<unsigned long>(facts.st_ino));
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, how, access, file;
    pid_t pid = 0;
    if (words >> number >> kind >> how >> access >> pid >> file && file == wanted) return pid;
  }
  return 0;
}

// The largest chunk of a RouDi that rtmeter started, which has its config as file 3; 0 if others did.
std::uint32_t largest_chunk_of(pid_t roudi) {
  const File config(open(("/proc/" + std::to_string(roudi) + "/fd/3").c_str(), O_RDONLY | O_CLOEXEC));
  const std::string text = text_of(config.fd);
  for (const std::uint32_t largest : {kUsualChunk, kLargestChunk})
    if (text == config_of(largest)) return largest;
  return 0;
}

// What follows runs between fork and exec: system calls only, since other threads may hold any lock.

// The keeper's whole life: RouDi ends when nobody holds a shared lock on its program any more.
[[noreturn]] void keep(const char* program, int config, int output, int alive, int most_files) {
  become_ordinary(output);
  dup2(config, 3);
  dup2(alive, 4);
  if (syscall(SYS_close_range, 5U, ~0U, 0U) != 0)  // an older kernel, or a container's filter
    for (int fd = 5; fd < most_files; ++fd) close(fd);
  const pid_t keeper = getpid();
  const pid_t roudi = fork();
  if (roudi == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == keeper) execl(program, "iox-roudi", "-c", "/proc/self/fd/3", nullptr);
    _exit(127);
  }
  if (roudi < 0) _exit(127);  // kill() would mean everybody by -1
  close(4);
  const int users = open(program, O_RDONLY | O_CLOEXEC);
  while (flock(users, LOCK_EX) != 0 && errno == EINTR) {
  }
  kill(roudi, SIGTERM);
  for (int waited_ms = 0; waitpid(roudi, nullptr, WNOHANG) == 0; waited_ms += kLookMs) {
    if (waited_ms == kEndTimeoutMs) kill(roudi, SIGKILL);
    usleep(kLookMs * 1000);
  }
  _exit(0);
}

void start(const std::string& program, const std::string& pools) {
  const File config(memfd_create("roudi.toml", MFD_CLOEXEC)), output(memfd_create("roudi.log", MFD_CLOEXEC));
  int ends[2];
  if (config.fd < 0 || output.fd < 0 || pipe2(ends, O_CLOEXEC) != 0) throw system_error("its files");
  const File ended(ends[0]);
  File alive(ends[1]);
  if (write(config.fd, pools.data(), pools.size()) != static_cast<ssize_t>(pools.size()))
    throw system_error("its config");
  const auto most_files = static_cast<int>(std::min(sysconf(_SC_OPEN_MAX), 65'536L));
  const pid_t keeper = fork();
  if (keeper < 0) throw system_error("fork");
  if (keeper == 0) keep(program.c_str(), config.fd, output.fd, alive.fd, most_files);
  alive.close_now();
  for (int waited_ms = 0; waited_ms < kStartTimeoutMs && !answers(); waited_ms += kLookMs) {
    pollfd end{ended.fd, POLLIN, 0};
    if (poll(&end, 1, kLookMs) == 0) continue;
    if (text_of(output.fd).find("ROUDI_STILL_RUNNING") == std::string::npos && !answers())
      throw error(program, "it ended at once: " + text_of(output.fd), "start it yourself to see why");
    usleep(kLookMs * 1000);  // another process was faster, but its RouDi does not answer yet
  }
  if (!answers())
    throw error(program, "it does not answer: " + text_of(output.fd), "start it yourself to see why");
}

}  // namespace

Roudi::Roudi(std::uint32_t chunk_bytes) : ran_already_(answers()) {
  const bool large = chunk_bytes > kUsualChunk && chunk_bytes <= kLargestChunk;
  const std::uint32_t wanted = large ? kLargestChunk : kUsualChunk;
  const std::string program = find_program("iox-roudi");
  // Never closed: the system releases the lock when the process has ended, after iceoryx's own last words.
  const int user = program.empty() ? -1 : open(program.c_str(), O_RDONLY | O_CLOEXEC);
  if (user >= 0) {
    for (int waited_ms = 0;; waited_ms += kLookMs) {
      while (flock(user, LOCK_SH) != 0 && errno == EINTR) {
      }
      ran_already_ = answers();  // one that was just ending has ended
      // One of ours with smaller chunks may be about to end with the run before: nobody is to keep it.
      const std::uint32_t largest = ran_already_ ? largest_chunk_of(holder_of_lock()) : 0;
      if (largest == 0 || largest >= wanted || waited_ms >= kEndTimeoutMs) break;
      flock(user, LOCK_UN);
      usleep(kLookMs * 1000);
    }
  }
  if (!ran_already_) {
    if (program.empty())
      throw error("", "RouDi, iceoryx's daemon, does not run, and there is no program iox-roudi to start",
                  "apt install iceoryx, or start RouDi");
    start(program, config_of(wanted));
  }
  pid_ = holder_of_lock();
  largest_chunk_ = largest_chunk_of(pid_);
  if (pid_ != 0) watch_.reset(new ProcessWatch("iox-watch", pid_));
}

}  // namespace rtmeter_iceoryx
