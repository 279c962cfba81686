// Priorities of the middleware's own threads: what option threads asks for, and what came of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rtmeter/adapter.hpp"
#include "text.hpp"

namespace rtmeter_common {

// The process's threads, by id.
inline std::vector<int> thread_ids() {
  std::vector<int> tids;
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir("/proc/self/task"), &closedir);
  while (const dirent* entry = tasks == nullptr ? nullptr : readdir(tasks.get()))
    if (entry->d_name[0] != '.') tids.push_back(std::atoi(entry->d_name));
  std::sort(tids.begin(), tids.end());
  return tids;
}

inline std::string thread_name(int tid) {
  std::string name;
  std::getline(std::ifstream("/proc/self/task/" + std::to_string(tid) + "/comm"), name);
  return name;
}

// Fast DDS 3 names its receivers by their port ("dds.udp.7412"), which follows from the session's domain.
inline std::string without_port(const std::string& thread) {
  for (const std::string before : {"dds.udp.", "dds.shm.", "dds.tcp."})
    if (thread.size() > before.size() && thread.compare(0, before.size(), before) == 0 &&
        thread.find_first_not_of("0123456789", before.size()) == std::string::npos)
      return before + "PORT";
  return thread;
}

struct ThreadPriority {
  std::string thread;  // its name, or empty: all
  int policy;          // SCHED_FIFO or SCHED_RR
  int priority;
};

// Option threads: "fifo:75" for all threads, "recv=fifo:80,tev=fifo:70" for some by name; the last that
// fits a thread holds.
class ThreadsOption : public rtmeter::Text {
 public:
  explicit ThreadsOption(rtmeter::OptionSet& set, const std::string& about =
                                                      "fifo:P or rr:P for all of the middleware's threads, "
                                                      "NAME=fifo:P,... for some, by the system")
      : Text(set, "threads", about) {}
};

// What it asks for, and what came of it.
class ThreadPlan {
 public:
  // Threads that run already when the process makes its first plan are not the middleware's.
  ThreadPlan(const rtm_run& run, const ThreadsOption& option)
      : field_(option.field()), given_(option.of(run)) {
    for (const std::string& part : split(given_, ',')) {
      const std::size_t equals = part.find('='), colon = part.find(':');
      const std::string policy = part.substr(equals + 1, colon - equals - 1);  // npos + 1 is 0
      const std::string digits = colon == std::string::npos ? "" : part.substr(colon + 1);
      const bool is_number =
          digits.size() <= 2 && digits.find_first_not_of("0123456789") == std::string::npos;
      const int priority = is_number ? std::atoi(digits.c_str()) : 0;
      if ((policy != "fifo" && policy != "rr") || priority < 1 || priority > 99)
        throw error("'" + part + "' is no priority", "give fifo:1 to fifo:99, or rr:1 to rr:99");
      wanted_.push_back({equals == std::string::npos ? "" : part.substr(0, equals),
                         policy == "fifo" ? SCHED_FIFO : SCHED_RR, priority});
      require_permission(wanted_.back());
    }
    ours();
  }

  const std::vector<ThreadPriority>& wanted() const { return wanted_; }
  const ThreadPriority* wanted_for(const std::string& thread) const {
    const ThreadPriority* found = nullptr;
    for (const ThreadPriority& one : wanted_)
      if (one.thread.empty() || one.thread == thread) found = &one;
    return found;
  }

  rtmeter::SetupError error(const std::string& message, const std::string& remedy) const {
    return rtmeter::SetupError(field_, given_, message, remedy);
  }

  // Returns when all threads but so many have got the name that they give themselves, or after a second.
  void await_names(std::ptrdiff_t nameless) const {
    const std::string unnamed = thread_name(getpid());
    for (int tries = 0; tries < 1000; ++tries) {
      const std::vector<std::string> all = names();
      if (std::count(all.begin(), all.end(), unnamed) <= nameless) return;
      const timespec millisecond{0, 1000000};
      nanosleep(&millisecond, nullptr);
    }
  }

  // Looks at every thread of the middleware's: one that does not run as wanted is set by the system.
  void enforce() {
    const std::vector<std::string> all = names();
    for (const ThreadPriority& one : wanted_)
      if (!one.thread.empty() && std::find(all.begin(), all.end(), one.thread) == all.end())
        throw error("there is no thread " + one.thread, "the threads are " + joined(all, ", "));
    for (const int tid : middleware_tids()) {
      const ThreadPriority* wanted = wanted_for(thread_name(tid));
      if (wanted == nullptr || runs_as(tid, *wanted)) continue;
      sched_param parameters{};
      parameters.sched_priority = wanted->priority;
      if (sched_setscheduler(tid, wanted->policy, &parameters) == 0)
        set_by_system_.insert(tid);
      else if (errno != ESRCH)  // it has ended meanwhile
        throw denied(errno);
    }
  }

  void describe(rtmeter::Sink& sink) const {
    const std::vector<int> tids = middleware_tids();
    sink.put("threads.count", std::to_string(tids.size()));
    if (given_.empty()) return;
    sink.put("threads.asked", given_);
    put_set(sink, "by_middleware", tids, [&](int tid) { return set_by_system_.count(tid) == 0; });
    put_set(sink, "by_system", tids, [&](int tid) { return set_by_system_.count(tid) != 0; });
  }

 private:
  // Those that are wanted some way and were set so: by name, and beside it the ports and ids of this session.
  template <typename Is>
  void put_set(rtmeter::Sink& sink, const std::string& how, const std::vector<int>& tids, Is&& is_set) const {
    std::set<std::pair<std::string, int>> found;
    for (const int tid : tids)
      if (const std::string name = thread_name(tid); wanted_for(name) != nullptr && is_set(tid))
        found.emplace(name, tid);
    std::vector<std::string> names, with_ids;
    for (const auto& [name, tid] : found) {
      names.push_back(without_port(name));
      with_ids.push_back(name + " (" + std::to_string(tid) + ")");
    }
    std::sort(names.begin(), names.end());
    sink.put("threads.set_" + how, joined(names, ", "));
    sink.put_chosen("threads_set_" + how, joined(with_ids, ", "));
  }
  rtmeter::SetupError denied(int reason) const {
    return error(std::strerror(reason),
                 "raise the limit of real-time priority (ulimit -r), or run with CAP_SYS_NICE");
  }
  // A thread as it is wanted, for a moment: middleware may abort where it cannot have one.
  void require_permission(const ThreadPriority& wanted) const {
    sched_param parameters{};
    parameters.sched_priority = wanted.priority;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, wanted.policy);
    pthread_attr_setschedparam(&attributes, &parameters);
    pthread_t thread;
    const int reason = pthread_create(&thread, &attributes, [](void*) -> void* { return nullptr; }, nullptr);
    pthread_attr_destroy(&attributes);
    if (reason != 0) throw denied(reason);
    pthread_join(thread, nullptr);
  }
  static bool runs_as(int tid, const ThreadPriority& wanted) {
    sched_param parameters{};
    return sched_getscheduler(tid) == wanted.policy && sched_getparam(tid, &parameters) == 0 &&
           parameters.sched_priority == wanted.priority;
  }
  static const std::vector<int>& ours() {
    static const std::vector<int> before = thread_ids();
    return before;
  }
  // Threads that came since then, and are neither the core's nor the caller.
  std::vector<int> middleware_tids() const {
    std::vector<int> tids;
    for (const int tid : thread_ids())
      if (!std::binary_search(ours().begin(), ours().end(), tid) &&
          thread_name(tid).compare(0, 4, "rtm-") != 0 && tid != gettid())
        tids.push_back(tid);
    return tids;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const int tid : middleware_tids()) all.push_back(thread_name(tid));
    return all;
  }

  std::string field_, given_;
  std::vector<ThreadPriority> wanted_;
  std::set<int> set_by_system_;
};

}  // namespace rtmeter_common
