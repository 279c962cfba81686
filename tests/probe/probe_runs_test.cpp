// The posix probe as a whole, in each of its ways to measure: every release is accounted for, to the end
// and when interrupted. With the sanitizers this is where the threads of a probe meet.
#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>

#include "probe_process.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

constexpr std::int64_t kSamples = 100, kTotal = 150;

std::int64_t number(const Json& end, const char* key) { return end.find("counters")->find(key)->as_int(); }

// Which way the messages went, as the end says; empty: there were none.
std::string carried_by(const Json& end) {
  const Json* path = end.find("path");
  return path == nullptr || path->is_null() ? "" : path->find("carried_by")->as_string();
}

void expect_complete(ProbeProcess& probe, const Json& end, const std::string& path = "") {
  EXPECT_EQ(probe.wait(), 0) << probe.errors();
  ASSERT_FALSE(end.is_null()) << probe.errors();
  EXPECT_EQ(end.find("outcome")->as_string(), "complete");
  EXPECT_EQ(end.find("rows")->as_int(), kTotal);
  for (const char* count : {"overflow", "duplicate", "out_of_order", "corrupted"})
    EXPECT_EQ(number(end, count), 0);
  EXPECT_EQ(carried_by(end), path) << end.dump();
}

void run(const Json& config, const std::string& path = "") {
  const Folder folder;
  ProbeProcess probe(RTMETER_PROBE, folder, "probe", config);
  expect_complete(probe, probe.next_event("end"), path);
}

TEST(ProbeRuns, Wakeup) {
  for (const char* overrun : {"catch_up", "skip"})
    run(probe_config("wakeup", kSamples, {{"overrun", overrun}}));
}

TEST(ProbeRuns, Timer) {
  for (const char* make : {"clock_nanosleep", "timerfd", "posix"}) {
    for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) {
      SCOPED_TRACE(std::string(make) + ", " + drive);
      run(probe_config("timer", kSamples,
                       {{"mode", "periodic"}, {"drive", drive}, {"options", option("timer", make)}}));
    }
    SCOPED_TRACE(std::string(make) + ", one_shot");
    run(probe_config("timer", kSamples,
                     {{"mode", "one_shot"}, {"timeout_ns", 1'000'000}, {"options", option("timer", make)}}));
  }
}

TEST(ProbeRuns, Cycle) {
  for (const char* components : {"two_threads", "one_thread"})
    for (const char* drive : {"spin", "sleep_then_spin_some", "poll"}) {
      SCOPED_TRACE(std::string(components) + ", " + drive);
      run(probe_config("cycle", kSamples,
                       {{"loss_timeout_ns", 500'000'000}, {"drive", drive}, {"components", components}}),
          "process");
    }
}

struct Link {
  const char *transport, *in_flight, *carried_by;
};

// Whether a stall passed over the run, so that little or nothing was sent.
bool is_passed_over(const Json& end) {
  const Json* warnings = end.is_null() ? nullptr : end.find("warnings");
  return warnings != nullptr && warnings->dump().find("\"mostly_") != std::string::npos;
}

// From the first reading, before anything is stamped, to the last one, after all is.
std::int64_t span_of_shared_clock(const Json& end) {
  if (end.is_null()) return 0;
  const Json::Array& readings = end.find("shared_clock")->find("readings")->as_array();
  return readings.back().as_array()[0].as_int() - readings.front().as_array()[0].as_int();
}

// Whether it was a whole one; the last one has to be.
bool exchanges(const Link& link, std::int64_t period_ns, bool is_last) {
  const Folder folder;
  const auto config = [&](const char* role, Json options) {
    Json made = probe_config("roundtrip", kSamples,
                             {{"role", role},
                              {"loss_timeout_ns", 500'000'000},
                              {"in_flight", link.in_flight},
                              {"shared_clock", "tai"},
                              {"options", std::move(options)}});
    made["period_ns"] = period_ns;
    return made;
  };
  ProbeProcess server(RTMETER_PROBE, folder, "server", config("server", option("transport", link.transport)));
  const Json ready = server.next_event("ready");
  EXPECT_FALSE(ready.is_null()) << server.errors();
  if (ready.is_null()) return true;
  Json options = option("transport", link.transport);
  options["endpoint"] = *ready.find("endpoint");
  ProbeProcess client(RTMETER_PROBE, folder, "client", config("client", options));
  const Json of_client = client.next_event("end");
  if (is_passed_over(of_client) && !is_last) return false;
  expect_complete(client, of_client, link.carried_by);
  EXPECT_GE(span_of_shared_clock(of_client), (kTotal - 1) * period_ns);
  server.interrupt();
  const Json end = server.next_event("end");
  EXPECT_EQ(carried_by(end), link.carried_by) << end.dump();
  EXPECT_EQ(server.wait(), 0) << server.errors();
  EXPECT_GT(end.find("rows")->as_int(), 0);
  return true;
}

TEST(ProbeRuns, Roundtrip) {
  for (const Link& link : {Link{"udp", "one", "udp"},
                           {"udp", "open", "udp"},
                           {"unix", "one", "unix"},
                           {"unix", "open", "unix"},
                           {"shm_futex", "one", "shared_memory"},
                           {"shm_futex", "open", "shared_memory"},
                           {"shm_poll", "one", "shared_memory"}}) {
    SCOPED_TRACE(std::string(link.transport) + ", " + link.in_flight);
    // A stall may pass over a whole run of 150 ms: a longer one.
    for (std::int64_t period_ns = 1'000'000; !exchanges(link, period_ns, period_ns >= 64'000'000);)
      period_ns *= 4;
  }
}

TEST(ProbeRuns, AnInterruptedRunKeepsWhatWasMeasured) {
  constexpr std::int64_t kForever = 1'000'000;
  const Json configs[] = {
      probe_config("wakeup", kForever, {}),
      probe_config("timer", kForever, {{"mode", "periodic"}, {"drive", "spin"}}),
      probe_config("timer", kForever, {{"mode", "one_shot"}, {"timeout_ns", 1'000'000}}),
      probe_config("cycle", kForever, {{"loss_timeout_ns", 500'000'000}}),
  };
  for (const Json& config : configs) {
    SCOPED_TRACE(config.dump());
    const Folder folder;
    ProbeProcess probe(RTMETER_PROBE, folder, "probe", config);
    Json progress = probe.next_event("progress");
    while (!progress.is_null() && progress.find("released")->as_int() < kTotal)
      progress = probe.next_event("progress");
    probe.interrupt();
    const Json end = probe.next_event("end");
    EXPECT_EQ(probe.wait(), 4) << probe.errors();
    ASSERT_FALSE(end.is_null());
    EXPECT_EQ(end.find("outcome")->as_string(), "interrupted");
    EXPECT_GE(end.find("rows")->as_int(), kTotal);
  }
}

// The probe ends its own sleeps by SIGUSR1, which whoever starts it may have blocked.
TEST(ProbeRuns, ALongSleepIsInterruptedWhateverSignalsAreBlocked) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const Folder folder;
  Json config = probe_config("wakeup", kSamples, {});
  config["period_ns"] = 3'600'000'000'000;
  ProbeProcess probe(RTMETER_PROBE, folder, "probe", config);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_FALSE(probe.next_event("ready").is_null()) << probe.errors();
  probe.interrupt();
  EXPECT_EQ(probe.wait(), 4) << probe.errors();
}

}  // namespace
}  // namespace rtmeter
