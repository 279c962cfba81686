// A loop of 1 kHz whose work needs a mutex that another thread holds now and then: mutex_loop FOLDER RELEASES
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <rtmeter/loop.hpp>
#include <thread>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " FOLDER RELEASES\n";
    return 1;
  }
  std::mutex mutex;
  double target = 0.0, position = 0.0;
  std::atomic<bool> running{true};
  std::atomic<long> late{0};
  std::thread planner([&] {
    for (double t = 0.0; running; t += 0.01) {
      const std::lock_guard<std::mutex> lock(mutex);
      target = t;
      std::this_thread::sleep_for(200us);  // with the mutex held: what the loop then waits for
    }
  });
  int code = 0;
  try {
    rtmeter::OwnLoopOptions options;
    options.folder = argv[1];
    options.miss_ratio = 0.9;  // of an example that plants its own delays
    options.warm_up = 20ms;
    options.on_late = [&](std::int64_t, std::int64_t, std::int64_t) { ++late; };
    rtmeter::OwnLoop loop("cpp-mutex", 1ms, options);
    for (long i = std::atol(argv[2]); i > 0; --i) {
      loop.sleep();
      {
        const std::lock_guard<std::mutex> lock(mutex);
        position += (target - position) * 0.1;
      }
      loop.done();
    }
    loop.close();
    std::cout << "position " << position << ", " << late << " late\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    code = 1;
  }
  running = false;
  planner.join();
  return code;
}
