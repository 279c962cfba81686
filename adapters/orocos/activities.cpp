#include "activities.hpp"

#include <sched.h>

#include <cstdlib>

#include "options.hpp"

namespace rtmeter_orocos {
namespace {

using rtmeter::SetupError;

constexpr char kSharedThread[] = "TimerTh~nstance";  // as RTT names it
constexpr unsigned kMostCpus = 32;                   // of RTT's mask

std::string policy_name(int policy) {
  return policy == SCHED_FIFO ? "fifo" : policy == SCHED_RR ? "rr" : "other";
}

std::string in_words(int policy, int priority) {
  return policy_name(policy) + (policy == SCHED_OTHER ? "" : ":" + std::to_string(priority));
}

std::string cpus_in_words(unsigned mask) {
  std::string text;
  for (unsigned cpu = 0; cpu < kMostCpus; ++cpu)
    if ((mask >> cpu & 1U) != 0) text += (text.empty() ? "" : ",") + std::to_string(cpu);
  return text;
}

unsigned cpus_in_effect(int tid) {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(tid, sizeof set, &set);
  unsigned mask = 0;
  for (unsigned cpu = 0; cpu < kMostCpus; ++cpu)
    if (CPU_ISSET(cpu, &set)) mask |= 1U << cpu;
  return mask;
}

}  // namespace

Activities::Activities(const rtm_run& run) : plan_(run, kOptions.threads), cpus_(kOptions.cpus.of(run)) {
  cpus_of("");  // tells now what cannot be read
}

RTT::Activity* Activities::make(const std::string& name, std::int64_t period_ns, bool relative_wait) {
  const Settings settings = settings_of(name);
  std::unique_ptr<RTT::Activity> activity(new RTT::Activity(
      settings.policy, settings.priority, RTT::nsecs_to_Seconds(period_ns), settings.cpus, nullptr, name));
  apply(*activity, settings, relative_wait);
  return activity.release();
}

RTT::extras::PeriodicActivity* Activities::make_periodic(std::int64_t period_ns, bool relative_wait) {
  const Settings settings = settings_of(kSharedThread);
  std::unique_ptr<RTT::extras::PeriodicActivity> activity(new RTT::extras::PeriodicActivity(
      settings.policy, settings.priority, RTT::nsecs_to_Seconds(period_ns), settings.cpus));
  apply(*activity->thread(), settings, relative_wait);
  return activity.release();
}

void Activities::enforce() {
  plan_.enforce();
  for (const std::string& part : rtmeter_common::split(cpus_, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || made_.count(part.substr(0, equals)) != 0) continue;
    std::string names;
    for (const std::string& name : made_) names += (names.empty() ? "" : ", ") + name;
    throw kOptions.cpus.error(cpus_, "RTT has no thread " + part.substr(0, equals),
                              "choose one of " + (names.empty() ? "none: it has no thread here" : names));
  }
}

Activities::Settings Activities::settings_of(const std::string& thread) {
  made_.insert(thread);
  if (const rtmeter_common::ThreadPriority* wanted = plan_.wanted_for(thread))
    return {wanted->policy, wanted->priority, cpus_of(thread)};
  const int policy = sched_getscheduler(0);
  if (policy != SCHED_OTHER && policy != SCHED_FIFO && policy != SCHED_RR)
    throw SetupError("scheduling", "policy " + std::to_string(policy), "RTT's threads are other, fifo or rr",
                     "choose one of these, --apply after_init, or option threads=fifo:80");
  sched_param parameters{};
  sched_getparam(0, &parameters);
  return {policy, parameters.sched_priority, cpus_of(thread)};
}

// "1" for all threads, "orocos-a=0,orocos-b=1" for some; the last that fits holds.
unsigned Activities::cpus_of(const std::string& thread) const {
  unsigned mask = 0;
  for (const std::string& part : rtmeter_common::split(cpus_, ',')) {
    const std::size_t equals = part.find('=');
    const std::string number = part.substr(equals + 1);  // npos + 1 is 0
    char* end = nullptr;
    const unsigned long cpu = std::strtoul(number.c_str(), &end, 10);
    if (number.empty() || number.front() < '0' || number.front() > '9' || *end != '\0' || cpu >= kMostCpus)
      throw kOptions.cpus.error(cpus_, "'" + part + "' is no CPU of RTT's, which are 0 to 31",
                                "give one, e.g. 1, or one for each thread, orocos-a=0,orocos-b=1");
    if (equals == std::string::npos || part.compare(0, equals, thread) == 0) mask = 1U << cpu;
  }
  return mask;
}

void Activities::apply(RTT::os::ThreadInterface& thread, const Settings& wanted, bool relative_wait) const {
  thread.setWaitPeriodPolicy(relative_wait ? ORO_WAIT_REL : ORO_WAIT_ABS);
  // A thread that inherited the policy keeps the inherited priority as well, whatever it was made with.
  if (thread.getPriority() != wanted.priority) thread.setPriority(wanted.priority);

  const int tid = static_cast<int>(thread.getPid());
  sched_param parameters{};
  sched_getparam(tid, &parameters);
  const std::string found = in_words(sched_getscheduler(tid), parameters.sched_priority);
  if (found != in_words(wanted.policy, wanted.priority))
    throw SetupError("scheduling", in_words(wanted.policy, wanted.priority),
                     std::string("RTT made its thread ") + thread.getName() + " run as " + found,
                     "raise the limit of real-time priority (ulimit -r), or run as root");
  if (wanted.cpus != 0 && cpus_in_effect(tid) != wanted.cpus)
    throw kOptions.cpus.error(cpus_,
                              std::string("RTT's thread ") + thread.getName() + " runs on CPU " +
                                  cpus_in_words(cpus_in_effect(tid)),
                              "choose CPUs that this machine has and this process may use");
}

std::string in_words(RTT::base::ActivityInterface& activity) {
  RTT::os::ThreadInterface* thread = activity.thread();
  std::string kind = "Activity";
  if (dynamic_cast<RTT::extras::PeriodicActivity*>(&activity) != nullptr) kind = "PeriodicActivity";
  if (dynamic_cast<RTT::extras::SlaveActivity*>(&activity) != nullptr) return "SlaveActivity";
  const std::int64_t period_ns = RTT::Seconds_to_nsecs(activity.getPeriod());
  kind += period_ns == 0 ? ", triggered" : ", every " + std::to_string(period_ns) + " ns";
  return kind + ", " + in_words(thread->getScheduler(), thread->getPriority()) + ", CPU " +
         cpus_in_words(activity.getCpuAffinity());
}

}  // namespace rtmeter_orocos
