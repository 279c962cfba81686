// A periodic component of OROCOS RTT whose update is recorded: periodic_component FOLDER RELEASES
#include <rtt/os/main.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <rtmeter/loop.hpp>
#include <rtt/Activity.hpp>
#include <rtt/TaskContext.hpp>
#include <thread>

namespace {

constexpr double kPeriodS = 0.01;

class Controller : public RTT::TaskContext {
 public:
  explicit Controller(rtmeter::OwnLoop& loop) : RTT::TaskContext("controller"), loop_(loop) {
    setActivity(new RTT::Activity(ORO_SCHED_OTHER, 0, kPeriodS, nullptr, "controller"));
  }
  ~Controller() override { stop(); }
  void updateHook() override {
    loop_.wake();  // RTT does not say when it was due: the grid is that of the earliest update
    ++updates;
    loop_.done();
  }
  std::atomic<long> updates{0};

 private:
  rtmeter::OwnLoop& loop_;
};

}  // namespace

int ORO_main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " FOLDER RELEASES\n";
    return 1;
  }
  rtmeter::OwnLoopOptions options;
  options.folder = argv[1];
  options.miss_ratio = 0.5;
  options.warm_up = std::chrono::milliseconds(50);
  rtmeter::OwnLoop loop("orocos-component", std::chrono::milliseconds(10), options);
  {
    Controller controller(loop);
    controller.start();
    while (controller.updates < std::atol(argv[2]))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    controller.stop();
  }
  loop.close();
  return 0;
}
