// rtmeter's own code on the measured path does no allocation, page fault or system call besides the one
// that sleeps to the release; the posix adapter's does none but those that wait, send, receive or arm.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>

#include "probe_process.hpp"
#include "system/limits.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;
using Calls = std::set<long>;

constexpr std::int64_t kSamples = 200;

// What a run was caught at.
struct Caught {
  int exit_code = -1;
  Json end, traps;

  std::int64_t allocations(const char* side) const { return traps.find(side)->find("allocations")->as_int(); }
  std::int64_t calls(const char* side, long number) const {
    const Json* count = traps.find(side)->find("calls")->find(std::to_string(number));
    return count == nullptr ? 0 : count->as_int();
  }
  Calls calls_besides(const char* side, const Calls& allowed) const {
    Calls others;
    for (const auto& [number, count] : traps.find(side)->find("calls")->as_object()) {
      if (allowed.count(std::stol(number)) == 0) others.insert(std::stol(number));
    }
    return others;
  }
  bool saw_all(const char* side, const Calls& needed) const {
    return std::all_of(needed.begin(), needed.end(), [&](long number) { return calls(side, number) > 0; });
  }
  std::int64_t faults() const {
    const Json* usage = end.find("usage");
    return usage->find("minor_faults")->as_int() + usage->find("major_faults")->as_int();
  }
  bool warned(const std::string& type) const {
    for (const Json& one : end.find("warnings")->as_array()) {
      if (one.find("type")->as_string() == type) return true;
    }
    return false;
  }
  std::string text() const { return traps.dump() + "\n" + end.dump(); }
};

Json config_of(const char* measurement, Json::Object more) {
  more.emplace_back("lock_memory", true);
  more.emplace_back("prefault_stack_bytes", 65536);
  return probe_config(measurement, kSamples, std::move(more));
}

Caught collect(ProbeProcess& probe) {
  Caught caught;
  caught.end = probe.next_event("end");
  caught.exit_code = probe.wait();
  std::string last;  // the traps' report
  std::istringstream errors(probe.errors());
  for (std::string line; std::getline(errors, line);) last = line;
  caught.traps = Json::parse(last, "the traps' report");
  return caught;
}

Caught run(const Json& config, const std::vector<std::string>& environment = {}) {
  const Folder folder;
  ProbeProcess probe(RTMETER_PROBE, folder, "probe", config, environment);
  return collect(probe);
}

// Nothing was caught but the calls named; each side's are those that the run cannot do without. Ending a
// server, which waits for messages until it is told, may take the adapter further ones.
void expect_clean(const Caught& caught, int threads, const Calls& core, const Calls& adapter,
                  const Calls& ending = {}, const Calls& core_may = {}) {
  EXPECT_EQ(caught.exit_code, 0) << caught.text();
  EXPECT_EQ(caught.traps.find("threads")->as_int(), threads) << caught.text();
  for (const char* side : {"core", "adapter"}) {
    EXPECT_EQ(caught.allocations(side), 0) << side << ": " << caught.text();
    const Calls& needed = side == std::string("core") ? core : adapter;
    Calls allowed = needed;
    const Calls& may = side == std::string("adapter") ? ending : core_may;
    allowed.insert(may.begin(), may.end());
    EXPECT_EQ(caught.calls_besides(side, allowed), Calls{}) << side << ": " << caught.text();
    for (const long number : needed)
      EXPECT_GT(caught.calls(side, number), 0) << "call " << number << " was not seen";
  }
  EXPECT_EQ(caught.faults(), 0) << caught.text();
  // What the window reads was opened long before: it comes just before the first measured release.
  EXPECT_EQ(caught.allocations("opening"), 0) << caught.text();
  EXPECT_EQ(caught.calls_besides("opening", {SYS_gettid, SYS_pread64, SYS_getrusage, SYS_clock_gettime}),
            Calls{})
      << caught.text();
  // Of the thread itself by getrusage and its own clock, of another that stamps by four files of /proc.
  const bool of_another = caught.calls("opening", SYS_getrusage) == 0;
  EXPECT_EQ(caught.calls("opening", of_another ? SYS_pread64 : SYS_getrusage), of_another ? 4 : 1)
      << caught.text();
}

// A stall may pass over a whole run of a quarter of a second, in which nothing is waited for or sent then: a
// longer one.
constexpr std::int64_t kPeriodsNs[] = {1'000'000, 4'000'000, 16'000'000, 64'000'000};

// Of a run of that kind in which so many threads, and these calls of each side, were seen.
Caught expect_clean_run(Json config, int threads, const Calls& core, const Calls& adapter) {
  Caught caught;
  for (const std::int64_t period_ns : kPeriodsNs) {
    config["period_ns"] = period_ns;
    caught = run(config);
    const bool both = caught.traps.find("threads")->as_int() == threads;
    if (both && caught.saw_all("core", core) && caught.saw_all("adapter", adapter)) break;
  }
  expect_clean(caught, threads, core, adapter);
  return caught;
}

constexpr std::chrono::milliseconds kLossTimeout{500};

// Of a machine that stands still for a loss timeout, many answers are as good as lost.
bool few_waits_anew(const Caught& caught, std::chrono::steady_clock::duration elapsed) {
  return caught.calls("adapter", SYS_ppoll) <= elapsed / (kLossTimeout - std::chrono::milliseconds(50)) + 1;
}

// One call received each message. Others came only with time: a receive ends without a message after 50 ms,
// a client that looks for its server asks every 20 ms, and what is left of a timeout below 50 ms, after an
// answer was as good as lost, is waited for by another call.
void expect_one_receive_a_message(const Caught& caught, std::chrono::steady_clock::duration elapsed) {
  using std::chrono::milliseconds;
  const std::int64_t idle = elapsed / milliseconds(50) + elapsed / milliseconds(20) + 2;
  const std::int64_t messages =
      std::min(caught.end.find("rows")->as_int(), kSamples + 50);  // and the warm-up's
  EXPECT_GE(caught.calls("adapter", SYS_recvfrom), 1) << caught.text();
  EXPECT_LE(caught.calls("adapter", SYS_recvfrom), messages + idle) << caught.text();
  EXPECT_TRUE(few_waits_anew(caught, elapsed)) << caught.text();
}

class MeasuredPath : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_capability(CAP_IPC_LOCK))
      GTEST_SKIP() << "needs CAP_IPC_LOCK: without locked memory pages fault";
    if (read_text("/proc/sys/kernel/seccomp/actions_avail").value_or("").find("trap") == std::string::npos) {
      GTEST_SKIP() << "needs seccomp filters";
    }
  }
};

TEST_F(MeasuredPath, Wakeup) {
  for (const char* overrun : {"catch_up", "skip"}) {
    const Caught caught =
        expect_clean_run(config_of("wakeup", {{"overrun", overrun}}), 1, {SYS_clock_nanosleep}, {});
    EXPECT_LE(caught.calls("core", SYS_clock_nanosleep), kSamples) << "one sleep a release";
  }
}

// A period of 1 us, which no sleep keeps: each ends with releases that have passed. All may have, if the
// thread did not run just before the window.
TEST_F(MeasuredPath, AReleaseThatHasPassedIsServedWithoutASystemCall) {
  Json config = config_of("wakeup", {{"overrun", "catch_up"}});
  config["period_ns"] = 1'000;
  config["warm_up"] = 0;
  const Caught caught = run(config);
  expect_clean(caught, 1, {}, {}, {}, {SYS_clock_nanosleep});
  EXPECT_EQ(caught.end.find("rows")->as_int(), kSamples);
  EXPECT_LE(caught.calls("core", SYS_clock_nanosleep), kSamples / 2) << caught.text();
}

struct TimerCase {
  const char *timer, *drive;
  Calls core, adapter;
};
using Timer = MeasuredPath;

TEST_F(Timer, Periodic) {
  const TimerCase cases[] = {
      {"clock_nanosleep", "spin", {}, {SYS_clock_nanosleep}},
      {"timerfd", "spin", {}, {SYS_epoll_wait, SYS_read}},
      {"posix", "spin", {}, {SYS_rt_sigtimedwait}},
      {"clock_nanosleep", "sleep_then_spin_some", {SYS_clock_nanosleep}, {}},
      {"timerfd", "sleep_then_spin_some", {SYS_clock_nanosleep}, {SYS_read}},
      {"posix", "sleep_then_spin_some", {SYS_clock_nanosleep}, {SYS_rt_sigtimedwait}},
      {"timerfd", "poll", {}, {SYS_read}},
  };
  for (const TimerCase& c : cases) {
    SCOPED_TRACE(std::string(c.timer) + ", " + c.drive);
    expect_clean_run(
        config_of("timer", {{"mode", "periodic"}, {"drive", c.drive}, {"options", option("timer", c.timer)}}),
        1, c.core, c.adapter);
  }
}

TEST_F(Timer, OneShot) {
  const TimerCase cases[] = {
      {"clock_nanosleep", "spin", {}, {SYS_clock_nanosleep}},
      {"timerfd", "spin", {}, {SYS_timerfd_settime, SYS_epoll_wait, SYS_read}},
      {"posix", "spin", {}, {SYS_timer_settime, SYS_rt_sigtimedwait}},
  };
  for (const TimerCase& c : cases) {
    SCOPED_TRACE(c.timer);
    Json config = config_of("timer", {{"mode", "one_shot"},
                                      {"timeout_ns", 1'000'000},
                                      {"drive", c.drive},
                                      {"options", option("timer", c.timer)}});
    expect_clean(run(config), 1, c.core, c.adapter);
  }
}

struct RoundtripCase {
  const char *transport, *receive, *in_flight;
  Calls client, server;
};

struct Exchanged {
  Caught client, server;
  std::chrono::steady_clock::duration took{};
};

void exchange(const RoundtripCase& c, std::int64_t period_ns, Exchanged& ran) {
  const Folder folder;
  const auto config = [&](const char* role, Json options) {
    Json made = config_of("roundtrip", {{"role", role},
                                        {"receive", c.receive},
                                        {"loss_timeout_ns", std::chrono::nanoseconds(kLossTimeout).count()},
                                        {"in_flight", c.in_flight},
                                        {"options", std::move(options)}});
    made["period_ns"] = period_ns;
    return made;
  };
  const auto start = std::chrono::steady_clock::now();
  ProbeProcess server(RTMETER_PROBE, folder, "server", config("server", option("transport", c.transport)));
  const Json ready = server.next_event("ready");
  ASSERT_FALSE(ready.is_null()) << server.errors();
  Json options = option("transport", c.transport);
  options["endpoint"] = *ready.find("endpoint");
  ProbeProcess client(RTMETER_PROBE, folder, "client", config("client", options));
  ran.client = collect(client);
  server.interrupt();
  ran.server = collect(server);
  ran.took = std::chrono::steady_clock::now() - start;
}

TEST_F(MeasuredPath, Roundtrip) {
  const RoundtripCase cases[] = {
      {"udp", "spin", "one", {SYS_sendmsg, SYS_recvfrom}, {SYS_sendmsg, SYS_recvfrom}},
      {"udp", "spin_once", "one", {SYS_sendmsg, SYS_recvfrom}, {SYS_sendmsg, SYS_recvfrom}},
      {"unix", "spin", "one", {SYS_sendmsg, SYS_recvfrom}, {SYS_sendmsg, SYS_recvfrom}},
      {"udp", "poll", "one", {SYS_sendmsg, SYS_recvfrom}, {SYS_sendmsg, SYS_recvfrom}},
      {"udp", "spin", "open", {SYS_sendmsg, SYS_recvfrom}, {SYS_sendmsg, SYS_recvfrom}},
      {"udp", "spin_once", "open", {SYS_sendmsg, SYS_recvfrom}, {SYS_sendmsg, SYS_recvfrom}},
      {"shm_futex", "spin", "one", {SYS_futex}, {SYS_futex}},
      {"shm_poll", "poll", "one", {}, {}},
  };
  for (const RoundtripCase& c : cases) {
    SCOPED_TRACE(std::string(c.transport) + ", " + c.receive + ", " + c.in_flight);
    Exchanged ran;
    for (const std::int64_t period_ns : kPeriodsNs) {
      ASSERT_NO_FATAL_FAILURE(exchange(c, period_ns, ran));
      const bool client = ran.client.saw_all("core", {SYS_clock_nanosleep}) &&
                          ran.client.saw_all("adapter", c.client) && !ran.client.warned("mostly_lost") &&
                          !ran.client.warned("mostly_skipped");
      const bool stood_still = !few_waits_anew(ran.client, ran.took) || !few_waits_anew(ran.server, ran.took);
      if (client && ran.server.saw_all("adapter", c.server) && !stood_still) break;
    }
    const bool apart = c.in_flight == std::string("open") || c.receive == std::string("spin");
    const bool waits = c.client.count(SYS_recvfrom) != 0 && c.receive != std::string("poll");
    const Calls rarely = waits ? Calls{SYS_ppoll} : Calls{};
    // The sender waits for an answer only if it is late.
    expect_clean(ran.client, apart ? 2 : 1, {SYS_clock_nanosleep}, c.client, rarely, {SYS_futex});
    expect_clean(ran.server, 1, {}, c.server, rarely);
    if (waits) {
      expect_one_receive_a_message(ran.client, ran.took);
      expect_one_receive_a_message(ran.server, ran.took);
    }
  }
}

TEST_F(MeasuredPath, Cycle) {
  const auto config = [&](const char* drive, const char* components) {
    return config_of("cycle",
                     {{"loss_timeout_ns", 500'000'000}, {"drive", drive}, {"components", components}});
  };
  expect_clean_run(config("sleep_then_spin_some", "one_thread"), 1, {SYS_clock_nanosleep}, {});
  expect_clean_run(config("sleep_then_spin_some", "two_threads"), 2, {SYS_clock_nanosleep}, {SYS_futex});
  expect_clean_run(config("spin", "one_thread"), 1, {}, {SYS_futex});
  expect_clean_run(config("spin", "two_threads"), 2, {}, {SYS_futex});
  // As after a stall that passed over the whole warm-up: the first answer of all is a measured one.
  Json measured_at_once = config("spin", "two_threads");
  measured_at_once["warm_up"] = 0;
  expect_clean_run(measured_at_once, 2, {}, {SYS_futex});
}

// The control: what is planted in a callback is caught, and told apart from what the adapter does.
using Control = MeasuredPath;

Json control_config() { return config_of("timer", {{"mode", "periodic"}, {"drive", "spin"}}); }

TEST_F(Control, APlantedAllocationIsCaught) {
  const Caught caught = run(control_config(), {"RTMETER_TRAP_PLANT=allocation"});
  EXPECT_GE(caught.allocations("core"), 2 * (kSamples - 1)) << caught.text();
  EXPECT_EQ(caught.allocations("adapter"), 0);
}

TEST_F(Control, APlantedSystemCallIsCaught) {
  const Caught caught = run(control_config(), {"RTMETER_TRAP_PLANT=call"});
  EXPECT_GE(caught.calls("core", SYS_getppid), kSamples - 1) << caught.text();
  EXPECT_EQ(caught.calls("adapter", SYS_getppid), 0);
}

TEST_F(Control, APlantedPageFaultIsCaught) {
  const Caught caught = run(control_config(), {"RTMETER_TRAP_PLANT=fault"});
  EXPECT_GE(caught.faults(), kSamples - 1) << caught.text();
}

}  // namespace
}  // namespace rtmeter
