// Counters of the measured thread. Reading them costs system calls, but neither memory nor faults.
#include "system/usage.hpp"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>
#include <utility>

namespace rtmeter {
namespace {

// The number behind "key   :   number" in a /proc/<tid>/sched text; -1 if absent.
std::int64_t number_after(std::string_view text, std::string_view key) noexcept {
  auto at = text.find(key);
  if (at == std::string_view::npos) return -1;
  at = text.find_first_not_of(" \t:", at + key.size());
  std::int64_t number = -1;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    number = (number < 0 ? 0 : number * 10) + (text[at] - '0');
  }
  return number;
}

// Two numbers of a /proc/<tid>/stat text, which come after the name in brackets: proc(5), fields 10 and 12.
void faults_in(std::string_view text, std::int64_t& minor, std::int64_t& major) noexcept {
  auto at = text.rfind(')');
  for (int field = 3; field <= 12; ++field) {
    if (at == std::string_view::npos) return;
    at = text.find(' ', at + 1);
    if (field == 10) minor = number_after(text.substr(at), " ");
    if (field == 12) major = number_after(text.substr(at), " ");
  }
}

// The file from its beginning; empty if it cannot be read.
template <std::size_t Size>
std::string_view reread(int fd, char (&text)[Size]) noexcept {
  const ssize_t bytes = fd < 0 ? -1 : pread(fd, text, Size, 0);
  return {text, bytes <= 0 ? 0 : static_cast<std::size_t>(bytes)};
}

// The scheduler's own count. A perf counter would do as well, but costs at every context switch.
std::int64_t migrations_in_proc(int fd) noexcept {
  char text[2048];  // nr_migrations is in the first lines
  const ssize_t bytes = pread(fd, text, sizeof text, 0);
  return bytes <= 0 ? -1 : number_after({text, static_cast<std::size_t>(bytes)}, "nr_migrations");
}

int open_migration_counter() noexcept {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_MIGRATIONS;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

std::int64_t migrations_in(int fd) noexcept {
  std::int64_t count = -1;
  return read(fd, &count, sizeof count) == sizeof count ? count : -1;
}

Json difference(std::int64_t before, std::int64_t after) {
  return before < 0 || after < 0 ? Json() : Json(after - before);
}

}  // namespace

// The first readings are for practice: they bring in the code and the pages that later ones use.
UsageWindow::UsageWindow() {
  open();
  close();
  before_ = after_ = Reading{};
  closed_.store(false);
}

UsageWindow::~UsageWindow() {
  close_files();
  close_followed();
}

void UsageWindow::close_files() noexcept {
  for (int* fd : {&proc_fd_, &counter_fd_}) {
    if (*fd >= 0) ::close(*fd);
    *fd = -1;
  }
}

void UsageWindow::prepare() noexcept {
  if (prepared_tid_ == gettid()) return;
  prepared_tid_ = gettid();
  close_files();
  proc_fd_ = ::open("/proc/thread-self/sched", O_RDONLY | O_CLOEXEC);
  if (migrations_in_proc(proc_fd_) < 0) counter_fd_ = open_migration_counter();
}

std::int64_t UsageWindow::migrations() const noexcept {
  return counter_fd_ < 0 ? migrations_in_proc(proc_fd_) : migrations_in(counter_fd_);
}

void UsageWindow::close_followed() noexcept {
  for (int* fd : {&stat_fd_, &status_fd_, &sched_fd_, &schedstat_fd_})
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
}

void UsageWindow::follow(int tid) noexcept {
  if (tid == followed_) return;
  close_followed();
  followed_ = tid;
  char path[64];
  const auto opened = [&](const char* file) {
    std::snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, file);
    return ::open(path, O_RDONLY | O_CLOEXEC);
  };
  stat_fd_ = opened("stat");
  status_fd_ = opened("status");
  sched_fd_ = opened("sched");
  schedstat_fd_ = opened("schedstat");
  Reading practice;
  read_followed(practice);
}

void UsageWindow::read_followed(Reading& into) const noexcept {
  char text[4096];
  into.tid = followed_;
  faults_in(reread(stat_fd_, text), into.minor_faults, into.major_faults);
  const std::string_view status = reread(status_fd_, text);
  into.voluntary = number_after(status, "\nvoluntary_ctxt_switches");
  into.involuntary = number_after(status, "\nnonvoluntary_ctxt_switches");
  into.migrations = number_after(reread(sched_fd_, text), "nr_migrations");
  into.cpu_ns = number_after(reread(schedstat_fd_, text), "");
  if (overruns_ != nullptr) into.overruns = overruns_->load();
}

// The usage is read closest to the window: last on opening, first on closing.
void UsageWindow::open() noexcept {
  if (followed_ != 0) return read_followed(before_);
  prepare();
  before_.tid = prepared_tid_;
  before_.migrations = migrations();
  if (overruns_ != nullptr) before_.overruns = overruns_->load();
  read_usage(before_);
}

void UsageWindow::close() noexcept {
  if (followed_ != 0) {
    read_followed(after_);
  } else {
    read_usage(after_);
    after_.tid = gettid();
    after_.migrations = migrations();
    if (overruns_ != nullptr) after_.overruns = overruns_->load();
  }
  closed_.store(true, std::memory_order_release);
}

void UsageWindow::read_usage(Reading& into) noexcept {
  rusage usage;
  timespec cpu;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) == 0)
    into.cpu_ns = std::int64_t{cpu.tv_sec} * 1'000'000'000 + cpu.tv_nsec;
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return;
  into.minor_faults = usage.ru_minflt;
  into.major_faults = usage.ru_majflt;
  into.voluntary = usage.ru_nvcsw;
  into.involuntary = usage.ru_nivcsw;
}

Json UsageWindow::to_json() const {
  Reading before, after;
  if (closed_.load(std::memory_order_acquire)) {  // before that a thread that hangs may be writing them
    before = before_;
    after = after_;
  }
  if (before.tid == 0 || before.tid != after.tid) before = after = Reading{};
  Json j = Json::object();
  j["cpu_ns"] = difference(before.cpu_ns, after.cpu_ns);
  if (overruns_ != nullptr) j["deadline_overruns"] = difference(before.overruns, after.overruns);
  j["minor_faults"] = difference(before.minor_faults, after.minor_faults);
  j["major_faults"] = difference(before.major_faults, after.major_faults);
  j["voluntary_switches"] = difference(before.voluntary, after.voluntary);
  j["involuntary_switches"] = difference(before.involuntary, after.involuntary);
  j["migrations"] = difference(before.migrations, after.migrations);
  return j;
}

std::optional<Json> UsageWindow::doubt() const {
  std::string unknown;
  const Json usage = to_json();
  for (const auto& [name, count] : usage.as_object())
    if (count.is_null()) unknown += (unknown.empty() ? "" : ", ") + name;
  if (unknown.empty()) return std::nullopt;
  return Json(Json::Object{
      {"type", "usage_unknown"},
      {"message", "not known of the measured thread: " + unknown},
      {"hint",
       "they are counted where one thread stamps, known before the first measured release, and migrations "
       "where /proc/PID/sched or perf events can be read"}});
}

}  // namespace rtmeter
