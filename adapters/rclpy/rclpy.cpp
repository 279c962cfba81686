// The rclpy adapter: runs rtmeter_rclpy.py in an interpreter within the probe, so that stamps and log stay
// the core's. The measured thread holds the interpreter's lock (GIL) while it is in rclpy, as a robot's
// would.
#include <pybind11/embed.h>
#include <pybind11/stl.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <deque>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "../common/ros/rmw.hpp"
#include "rtmeter/adapter.hpp"

namespace py = pybind11;

namespace rtmeter_rclpy {
namespace {

struct Options : rtmeter_ros::OptionSet {
  rtmeter::Choice executor{*this,
                           "executor",
                           {"single", "multi", "events"},
                           "rclpy's executors; callbacks of multi run on threads of its own"};
  rtmeter::ChoiceOf<bool> steady{
      *this,
      "clock",
      {{"ros", false}, {"steady", true}},
      "of timers; a node's own, which follows the time of day, or CLOCK_MONOTONIC"};
  rtmeter::ChoiceOf<bool> gc{*this, "gc", {{"on", true}, {"off", false}}, "Python's garbage collector"};
};
const Options kOptions;

// Measured path.
template <typename Call>
int with_gil(Call&& call) {
  const py::gil_scoped_acquire gil;
  call();
  return 0;
}

// Setup, with the GIL held; an exception of Python's becomes an error of what was set up.
template <typename Call>
auto checked(const std::string& what, Call&& call) -> decltype(call()) {
  const py::gil_scoped_acquire gil;
  try {
    return call();
  } catch (const py::error_already_set& error) {
    throw rtmeter::SetupError(what, "", "rclpy: " + std::string(py::str(error.value())),
                              "see the middleware's messages in the cell's probe.stderr");
  }
}

// The interpreter of the virtual environment that rclpy was found in; it handles no signals.
void start_python() {
  if (Py_IsInitialized() != 0) return;  // a discovery starts again and again
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.install_signal_handlers = 0;
  PyConfig_SetBytesString(&config, &config.program_name, RTMETER_PYTHON);
  py::initialize_interpreter(&config, 0, nullptr, false);
  char self[PATH_MAX] = "";
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  const std::string program(self, length < 0 ? 0 : static_cast<std::size_t>(length));
  const std::string folder = program.substr(0, program.rfind('/')) + "/rtmeter-rclpy";
  py::module_::import("sys").attr("path").attr("insert")(0, folder);
}

struct Timer {
  rtm_timer_spec spec;
  std::atomic<bool> in_callback{false};
  py::object handle;
};

// What is Python's. It is never destroyed, nor is the interpreter ended: threads of the middleware's may
// still let go of things of theirs when the process ends.
struct Python {
  py::object module, adapter;
  std::deque<py::object> nodes, publishers, clients, servers;
  std::deque<Timer> timers;
};

class Rclpy final : public rtmeter::Adapter {
 public:
  static void describe_static(rtmeter::Sink& sink) {
    sink.put("name", "rclpy").put("version", "1").put("middleware", "ROS 2, rclpy");
    sink.put("middleware_version", RTMETER_RCLPY_VERSION);
    for (const char* what : {"wakeup", "timer.one_shot", "timer.periodic", "roundtrip", "request", "cycle",
                             "chain", "discovery"})
      sink.put("measures", what);
    for (const char* what : {"receives.chain", "receives.discovery"}) sink.put(what, "spin_once");
    for (const char* end : {"publisher", "subscriber"}) sink.put("matches", end);
    for (const char* interface : {"service", "action"}) sink.put("interfaces", interface);
    for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.timer", drive);
    for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) sink.put("drives.cycle", drive);
    sink.put("components", "one_thread");
    for (const char* way : {"spin", "spin_once", "poll"}) sink.put("receives.roundtrip", way);
    for (const char* way : {"spin", "spin_once", "poll"}) sink.put("receives.request", way);
    for (const char* what : {"subscribers", "publishers", "background_nodes"}) sink.put("beside", what);
    for (const char* what : {"roundtrip", "request", "timer executor=multi", "cycle executor=multi"})
      sink.put("background", what);
    rtmeter_ros::describe_rmw_static(sink);
    kOptions.describe(sink);
  }

  explicit Rclpy(const rtm_run& run)
      : run_(run), threads_(run, kOptions.threads), domain_(rtmeter_ros::domain_of(run, kOptions)),
        qos_(run.measurement == RTM_REQUEST ? rmw_qos_profile_services_default
                                            : rtmeter_ros::qos_of(run, kOptions)) {
    const bool collects = kOptions.gc.of(run);
    if (run.measurement == RTM_TIMER || run.measurement == RTM_CYCLE) steady_ = kOptions.steady.of(run);
    const std::string executor = kOptions.executor.of(run);
    rtmeter_ros::load_rmw(run, kOptions);
    start_python();
    try {
      python_.module = py::module_::import("rtmeter_rclpy");
      std::vector<std::string> executors;
      for (const auto& known : python_.module.attr("EXECUTORS"))
        executors.push_back(known.cast<std::string>());
      kOptions.executor.of(run, executors);  // this rclpy may lack some
      // The last cycles are answered after the timer's last tick.
      python_.adapter =
          python_.module.attr("Adapter")(executor, collects, domain_, steady_, run.measurement == RTM_CYCLE);
    } catch (const py::error_already_set& error) {
      throw rtmeter::SetupError("rclpy", RTMETER_RCLPY_VERSION, error.what(),
                                "install the packages of requirements.lock (make venv)");
    }
    released_ = std::make_unique<py::gil_scoped_release>();  // threads run while this one sleeps
    threads_.enforce();
  }
  ~Rclpy() override {
    attempt("stop", [&] { return with_gil([&] { python_.adapter.attr("stop")(); }); });
  }

  void* create_node(const std::string& name) override {
    python_.nodes.push_back(checked("node", [&] { return invoke("create_node", name); }));
    threads_.enforce();
    return &python_.nodes.back();
  }

  void* create_timer(void* node, const rtm_timer_spec& spec, rtm_timer_traits& traits) override {
    Timer& timer = python_.timers.emplace_back();
    timer.spec = spec;
    checked("timer", [&] {
      const auto fired = [&timer](std::int64_t expected_ns, std::int64_t actual_ns) {
        timer.in_callback.store(true, std::memory_order_relaxed);
        const rtm_fire fire{expected_ns, actual_ns};
        timer.spec.on_fire(timer.spec.user, &fire);
      };
      const auto done = [&timer] { timer.in_callback.store(false, std::memory_order_release); };
      timer.handle = invoke("create_timer", *static_cast<py::object*>(node), spec.period_ns,
                            spec.mode == RTM_ONE_SHOT, py::cpp_function(fired), py::cpp_function(done));
    });
    traits.ticks = RTM_JUMPS;  // rcl_timer_call passes over every period that is missed
    traits.overrun = RTM_SKIP;
    traits.reports_monotonic = reported_clock() == "monotonic" ? 1 : 0;
    return &timer;
  }
  // A callback of another thread may still be about to cancel the shot that it was called for.
  int arm(void* timer_pointer, std::int64_t /*now_ns*/) override {
    auto* timer = static_cast<Timer*>(timer_pointer);
    while (timer->in_callback.load(std::memory_order_acquire)) sched_yield();
    return with_gil([&] { timer->handle.attr("reset")(); });
  }

  void watch(void* /*node*/, rtm_on_match on_match, void* user) override {
    const auto matched = [on_match, user](int end, std::int32_t others) {
      on_match(user, static_cast<rtm_end>(end), others);
    };
    checked("node", [&] { invoke("watch", py::cpp_function(matched)); });
  }

  void* create_publisher(void* node, const std::string& topic) override {
    python_.publishers.push_back(checked("publisher", [&] {
      return invoke("create_publisher", *static_cast<py::object*>(node), rtmeter_ros::topic_name(run_, topic),
                    qos(), topic);
    }));
    threads_.enforce();
    return &python_.publishers.back();
  }
  int publish(void* publisher, const rtm_message& message) override {
    return with_gil([&] {
      (*static_cast<py::object*>(publisher))(message.sequence,
                                             py::memoryview::from_memory(message.data, message.bytes));
    });
  }

  void* create_subscriber(void* node, const std::string& topic, rtm_on_message on_message,
                          void* user) override {
    checked("subscription", [&] {
      const auto received = [on_message, user](std::uint64_t sequence, const py::buffer& payload) {
        with_message(sequence, payload, [&](const rtm_message& message) { on_message(user, &message); });
      };
      invoke("create_subscription", *static_cast<py::object*>(node), rtmeter_ros::topic_name(run_, topic),
             qos(), topic, py::cpp_function(received));
    });
    threads_.enforce();
    return this;
  }

  void* create_client(void* node, const std::string& service, rtm_on_reply on_reply, void* user) override {
    const auto received = [on_reply, user](int what, std::uint64_t sequence, const py::buffer& payload) {
      with_message(sequence, payload, [&](const rtm_message& message) {
        on_reply(user, static_cast<rtm_reply>(what), &message);
      });
    };
    python_.clients.push_back(checked("client", [&] {
      return invoke("create_client", *static_cast<py::object*>(node), is_action(),
                    rtmeter_ros::topic_name(run_, service), service, py::cpp_function(received));
    }));
    threads_.enforce();
    return &python_.clients.back();
  }
  void* create_server(void* node, const std::string& service, rtm_on_message on_request,
                      void* user) override {
    const auto asked = [on_request, user](std::uint64_t sequence, const py::buffer& payload) {
      with_message(sequence, payload, [&](const rtm_message& message) { on_request(user, &message); });
    };
    python_.servers.push_back(checked("server", [&] {
      return invoke("create_server", *static_cast<py::object*>(node), is_action(),
                    rtmeter_ros::topic_name(run_, service), service, py::cpp_function(asked));
    }));
    threads_.enforce();
    return &python_.servers.back();
  }
  int call(void* client, const rtm_message& request) override {
    return with_gil([&] {
      (*static_cast<py::object*>(client))(request.sequence,
                                          py::memoryview::from_memory(request.data, request.bytes));
    });
  }
  int reply(void* server, rtm_reply what, const rtm_message& message) override {
    return with_gil([&] {
      (*static_cast<py::object*>(server))(static_cast<int>(what), message.sequence,
                                          py::memoryview::from_memory(message.data, message.bytes));
    });
  }

  int spin(std::int64_t /*timeout_ns*/) override {
    int result = 0;
    bool is_over = false;
    while (result == 0 && !interrupted_.exchange(false) && !is_over)
      result = with_gil([&] { is_over = invoke("spin").cast<bool>(); });
    return result;
  }
  int wait(std::int64_t timeout_ns) override {
    return interrupted_.exchange(false) ? 0 : with_gil([&] { invoke("wait", timeout_ns); });
  }
  int spin_some() override {
    return with_gil([&] { invoke("spin_some"); });
  }
  void interrupt() override {
    interrupted_.store(true);
    with_gil([&] { invoke("interrupt"); });
  }

  void describe(rtmeter::Sink& sink) const override {
    rtmeter_ros::describe_rmw(sink, domain_, run_, kOptions);
    threads_.describe(sink);
    if (!python_.timers.empty()) sink.put("reported_clock", reported_clock());
    using Facts = std::tuple<std::string, std::map<std::string, std::string>, std::size_t, std::string>;
    std::vector<rtmeter_common::EndFacts> ends;
    int others = 0;
    checked("rclpy", [&] {
      for (const auto& fact : invoke("facts").cast<std::map<std::string, std::string>>())
        sink.put(fact.first, fact.second);
      for (Facts& end : invoke("ends").cast<std::vector<Facts>>())
        ends.push_back({std::get<0>(end), std::get<1>(end), std::get<2>(end), std::get<3>(end)});
      others = invoke("other_nodes").cast<int>();
    });
    rtmeter_common::describe_ends(sink, ends, others, rtmeter_ros::discovery_scope(domain_), "nodes");
  }

 private:
  bool is_action() const { return run_.interface == RTM_ACTION; }
  // A message of Python's, as the core takes it.
  template <typename Take>
  static void with_message(std::uint64_t sequence, const py::buffer& payload, Take&& take) {
    Py_buffer view;
    if (PyObject_GetBuffer(payload.ptr(), &view, PyBUF_SIMPLE) != 0) throw py::error_already_set();
    take(rtm_message{sequence, static_cast<const std::uint8_t*>(view.buf),
                     static_cast<std::uint32_t>(view.len)});
    PyBuffer_Release(&view);
  }
  // With the GIL held.
  template <typename... Arguments>
  py::object invoke(const char* method, Arguments&&... arguments) const {
    return python_.adapter.attr(method)(std::forward<Arguments>(arguments)...);
  }
  py::object qos() const {
    return python_.module.attr("qos_of")(qos_.depth, qos_.reliability == RMW_QOS_POLICY_RELIABILITY_RELIABLE,
                                         qos_.history == RMW_QOS_POLICY_HISTORY_KEEP_ALL,
                                         qos_.durability == RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL);
  }
  std::string reported_clock() const {
    if (!steady_) return "time_of_day";
    const auto now_ns = [&] {
      return checked("clock", [&] { return invoke("now_ns").cast<std::int64_t>(); });
    };
    return rtmeter_ros::is_monotonic(now_ns) ? "monotonic" : "monotonic_raw";
  }

  const rtm_run run_;
  rtmeter_common::ThreadPlan threads_;
  const std::size_t domain_;
  const rmw_qos_profile_t qos_;
  bool steady_ = false;
  Python& python_ = *new Python;
  std::unique_ptr<py::gil_scoped_release> released_;
  std::atomic<bool> interrupted_{false};
};

}  // namespace
}  // namespace rtmeter_rclpy

RTMETER_ADAPTER_MAIN(rtmeter_rclpy::Rclpy)
