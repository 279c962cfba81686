// The probe's main with adapters made up for a test, in a process of its own.
#include "rtmeter/probe.hpp"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "child.hpp"
#include "emulated.hpp"
#include "json/json.hpp"
#include "rtmeter/adapter.hpp"
#include "sample_log_file.hpp"
#include "system/audit.hpp"
#include "system/limits.hpp"

namespace rtmeter {
namespace {

using testing_help::file_content;
using testing_help::read_sample_log;

struct Outcome {
  std::string exit_code;
  std::string status;  // the lines on standard output
  std::string frames;  // kinds of the log's

  // The status line of that event.
  Json event(const std::string& name) const {
    std::istringstream lines(status);
    for (std::string line; std::getline(lines, line);)
      if (Json json = Json::parse(line, "status"); json.find("event")->as_string() == name) return json;
    ADD_FAILURE() << "no " << name << " in: " << status;
    return Json::object();
  }
};

template <typename A>
Outcome run(Json config) {
  const testing_help::TemporaryDirectory folder;
  const std::string config_path = folder / "config.json", log = folder / "log.rtlog", said = folder / "said";
  config["version"] = 1;
  config["log"] = log;
  config["period_ns"] = 1'000'000;
  config["samples"] = 3;
  std::ofstream(config_path) << config.dump();
  const std::string code = testing_help::in_child([&] {
    if (std::freopen(said.c_str(), "w", stdout) == nullptr) return std::string("no file");
    std::string words[] = {"probe", "--config", config_path};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    return std::to_string(rtm_probe_main(3, arguments, adapter_table<A>()));
  });
  return {code, file_content(said), read_sample_log(log).kinds()};
}

struct Fake : Adapter {
  explicit Fake(const rtm_run& /*run*/) {}
  static void describe_static(Sink& sink) { sink.put("name", "fake").put("measures", "wakeup"); }
};

// As rclcpp or an XML-RPC client does when it is asked for what it knows.
struct ThrowsWhenAsked final : Fake {
  using Fake::Fake;
  void describe(Sink& /*sink*/) const override { throw std::runtime_error("the daemon hung up"); }
};

TEST(Probe, AnExceptionOfTheMiddlewareIsAnErrorAndTheLogIsEnded) {
  const Outcome outcome =
      run<ThrowsWhenAsked>(Json(Json::Object{{"measurement", "wakeup"}, {"before", "init"}}));
  EXPECT_EQ(outcome.exit_code, "1");
  EXPECT_EQ(outcome.event("error").find("message")->as_string(), "the daemon hung up");
  EXPECT_EQ(outcome.event("end").find("outcome")->as_string(), "failed");
  EXPECT_EQ(outcome.frames, "HHE");
}

// A timer that calls back on threads of its own.
struct CallsFromThreads : Fake {
  using Fake::Fake;
  static void describe_static(Sink& sink) {
    sink.put("name", "fake").put("measures", "timer.periodic").put("drives.timer", "spin");
  }
  void* create_timer(void* /*node*/, const rtm_timer_spec& spec, rtm_timer_traits& traits) override {
    timer = spec;
    traits = {RTM_EVERY_TICK, RTM_CATCH_UP, 0};
    return this;
  }
  int arm(void* /*timer*/, std::int64_t /*now_ns*/) noexcept override { return 0; }
  int spin(std::int64_t /*timeout_ns*/) noexcept override {
    const rtm_fire fire{RTM_ABSENT, RTM_ABSENT};
    std::thread([&] { timer.on_fire(timer.user, &fire); }).join();
    return 0;
  }
  void interrupt() noexcept override {}
  rtm_timer_spec timer{};
};

TEST(Probe, AThreadWhoseUsageIsNotKnownIsADoubt) {
  const Outcome outcome = run<CallsFromThreads>(
      Json(Json::Object{{"measurement", "timer"}, {"mode", "periodic"}, {"warm_up", 1}}));
  EXPECT_EQ(outcome.exit_code, "0") << outcome.status;
  const Json end = outcome.event("end");
  EXPECT_TRUE(end.find("usage")->find("minor_faults")->is_null());
  const Json::Array& warnings = end.find("warnings")->as_array();
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0].find("type")->as_string(), "grid_inferred");
  EXPECT_EQ(warnings[1].find("type")->as_string(), "usage_unknown");
  EXPECT_EQ(end.find("effective")->find("grid")->as_string(), "inferred");
}

// Work that goes on until an overrun was counted.
struct Overruns final : CallsFromThreads {
  using CallsFromThreads::CallsFromThreads;
  int spin(std::int64_t /*timeout_ns*/) noexcept override {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (sleeps_of_counter() < 10 && std::chrono::steady_clock::now() < give_up) {
    }
    const rtm_fire fire{RTM_ABSENT, RTM_ABSENT};
    timer.on_fire(timer.user, &fire);
    return 0;
  }
  // Of the thread that counts overruns: before each of them one, and one after; its start may have a few
  // more.
  static int sleeps_of_counter() {
    const std::string key = "\nvoluntary_ctxt_switches:";
    for (const ThreadFacts& thread : audit_threads({}, {})) {
      if (thread.name != "rtm-overruns") continue;
      const std::string status =
          read_text("/proc/self/task/" + std::to_string(thread.tid) + "/status").value_or(key + "0");
      return std::stoi(status.substr(status.find(key) + key.size()));
    }
    return 0;
  }
};

TEST(Probe, ARuntimeThatIsTooShortIsADoubt) {
  SKIP_UNDER_EMULATION();
  NEEDS_CAPABILITY(CAP_SYS_NICE);
  NEEDS_EVERY_CPU();
  const Json runtime = Json::parse(
      R"({"policy": "deadline", "runtime_ns": 500000, "deadline_ns": 5000000, "period_ns": 5000000})",
      "test");
  const Outcome outcome = run<Overruns>(Json(Json::Object{{"measurement", "timer"},
                                                          {"mode", "periodic"},
                                                          {"warm_up", 1},
                                                          {"apply", "after_init"},
                                                          {"scheduling", runtime}}));
  EXPECT_EQ(outcome.exit_code, "0") << outcome.status;
  EXPECT_CONTAINS(outcome.event("end").find("warnings")->dump(), "deadline_overruns");
}

// A thread that does what it is given while the giver waits.
class Helper {
 public:
  ~Helper() {
    do_it(nullptr);
    thread_.join();
  }
  void do_it(std::function<void()> call) {
    call_ = std::move(call);
    given_.release();
    done_.acquire();
  }

 private:
  void run() {
    for (bool more = true; more; done_.release()) {
      given_.acquire();
      more = static_cast<bool>(call_);
      if (more) call_();
    }
  }
  std::function<void()> call_;
  std::binary_semaphore given_{0}, done_{0};
  std::thread thread_{[this] { run(); }};
};

// A cycle whose requests and responses come on the measured thread or on one of the middleware's, the first
// of them perhaps not yet.
template <bool RequestElsewhere, bool ResponseElsewhere, bool FirstHere = false>
struct CycleOn final : Adapter {
  struct Topic {
    bool elsewhere;
    rtm_on_message on_message;
    void* user;
    std::optional<std::uint64_t> waiting;
    bool is_first = true;
  };
  explicit CycleOn(const rtm_run& run) : asked(run.components_asked), bytes(run.payload_bytes) {}
  static void describe_static(Sink& sink) {
    sink.put("name", "fake").put("measures", "cycle").put("components", "two_threads");
    sink.put("receives.cycle", "spin_once");
  }
  void describe(Sink& sink) const override { sink.put("components_asked", std::to_string(asked)); }
  void* create_publisher(void* /*node*/, const std::string& name) override { return &topic(name); }
  void* create_subscriber(void* /*node*/, const std::string& name, rtm_on_message on_message,
                          void* user) override {
    topic(name).on_message = on_message;
    topic(name).user = user;
    return this;
  }
  int publish(void* to, const rtm_message& message) noexcept override {
    static_cast<Topic*>(to)->waiting = message.sequence;
    return 0;
  }
  int wait(std::int64_t /*timeout_ns*/) noexcept override {
    for (Topic* of : {&request, &response}) {
      if (!of->waiting) continue;
      const rtm_message message{*of->waiting, bytes.data(), static_cast<std::uint32_t>(bytes.size())};
      of->waiting.reset();
      const auto call = [&] { of->on_message(of->user, &message); };
      const bool here = std::exchange(of->is_first, false) && FirstHere;
      if (of->elsewhere && !here)
        helper.do_it(call);
      else
        call();
    }
    return 0;
  }
  Topic& topic(const std::string& name) { return name == "request" ? request : response; }

  Topic request{RequestElsewhere, nullptr, nullptr, {}}, response{ResponseElsewhere, nullptr, nullptr, {}};
  const std::int32_t asked;
  const std::vector<std::uint8_t> bytes;
  Helper helper;
};

template <typename A>
Outcome run_cycle(Json config = Json::object()) {
  config["measurement"] = "cycle";
  config["loss_timeout_ns"] = 60'000'000'000;
  return run<A>(config);
}

TEST(Probe, TheThreadsOfACyclesComponentsAreSeen) {
  const auto seen = [](const Outcome& outcome) {
    EXPECT_EQ(outcome.exit_code, "0") << outcome.status;
    EXPECT_TRUE(outcome.event("ready").find("effective")->find("components")->is_null());
    return outcome.event("end").find("effective")->find("components")->as_string();
  };
  EXPECT_EQ(seen(run_cycle<CycleOn<false, false>>()), "one_thread");
  EXPECT_EQ(seen(run_cycle<CycleOn<true, false>>()), "two_threads");
  EXPECT_EQ(seen(run_cycle<CycleOn<true, true>>()), "middleware_threads");
  EXPECT_EQ(seen(run_cycle<CycleOn<false, true>>()), "middleware_threads");
  EXPECT_EQ((seen(run_cycle<CycleOn<false, true, true>>())), "middleware_threads");
  EXPECT_EQ((seen(run_cycle<CycleOn<true, false, true>>())), "middleware_threads");
}

TEST(Probe, TheAdapterIsToldWhichComponentsWereAskedForOrThatNoneWere) {
  const auto told = [](Json config) {
    return run_cycle<CycleOn<true, false>>(std::move(config))
        .event("end")
        .find("adapter")
        ->find("components_asked")
        ->as_string();
  };
  EXPECT_EQ(told(Json::object()), "-1");
  EXPECT_EQ(told(Json(Json::Object{{"components", "two_threads"}})), std::to_string(RTM_TWO_THREADS));
}

TEST(Probe, ComponentsThatDidNotTakeAreAnError) {
  const Json two(Json::Object{{"components", "two_threads"}});
  EXPECT_EQ((run_cycle<CycleOn<true, false>>(two).exit_code), "0");
  const Outcome other = run_cycle<CycleOn<false, false>>(two);
  EXPECT_EQ(other.exit_code, "1");
  EXPECT_EQ(other.event("error").find("field")->as_string(), "components");
  EXPECT_EQ(other.event("error").find("message")->as_string(), "they were seen on one_thread");
  const Outcome unknown = run_cycle<CycleOn<false, false>>(Json(Json::Object{{"components", "one_thread"}}));
  EXPECT_EQ(unknown.exit_code, "1");
  EXPECT_EQ(unknown.event("error").find("message")->as_string(),
            "this adapter runs the components of a cycle by two_threads");
}

}  // namespace
}  // namespace rtmeter
