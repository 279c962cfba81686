#include "probe/status.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

namespace rtmeter {
namespace {

// Standard output as a pipe of one page, put back at the end.
class Pipe {
 public:
  Pipe() : before_(dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    if (pipe(ends_) != 0) throw std::runtime_error("pipe");
    fcntl(ends_[1], F_SETPIPE_SZ, 4096);
    dup2(ends_[1], STDOUT_FILENO);
  }
  ~Pipe() {
    dup2(before_, STDOUT_FILENO);
    for (const int fd : {before_, ends_[0]}) close(fd);
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_writer() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  int held() const {
    int bytes = 0;
    ioctl(ends_[0], FIONREAD, &bytes);
    return bytes;
  }
  std::string read_all() const {
    std::string text;
    char part[4096];
    for (ssize_t bytes; (bytes = read(ends_[0], part, sizeof part)) > 0;)
      text.append(part, static_cast<std::size_t>(bytes));
    return text;
  }

 private:
  int before_, ends_[2] = {-1, -1};
};

// The signal by which the supervisor ends the measured thread's sleeps may come while that writes.
TEST(StatusOut, ASignalCutsNoLineShort) {
  struct sigaction ignored{}, before{};
  ignored.sa_handler = [](int) {};
  sigaction(SIGUSR1, &ignored, &before);
  Json object = Json::object();
  object["text"] = std::string(20'000, 'x');  // more than the pipe holds
  std::string said;
  {
    Pipe pipe;
    std::thread writer([&] {
      StatusOut out;
      pipe.close_writer();
      out.write(object);
    });
    while (pipe.held() < 4096) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (int i = 0; i < 20; ++i) {  // it waits for room now
      pthread_kill(writer.native_handle(), SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    said = pipe.read_all();
    writer.join();
  }
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(said.size(), object.dump().size() + 1);
  EXPECT_TRUE(said == object.dump() + "\n");
}

}  // namespace
}  // namespace rtmeter
