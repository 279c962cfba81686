// Memory that is there before the measured window: locked and touched.
#include "system/memory.hpp"

#include <alloca.h>
#include <linux/capability.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "system/explain.hpp"
#include "system/limits.hpp"

namespace rtmeter {
namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::int64_t thread_faults() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

// A line of /proc/self/status in KiB; 0 if absent.
std::int64_t status_kib(const char* key) {
  const std::string text = status_value("/proc/self/status", key).value_or("0");
  std::int64_t kib = 0;
  std::from_chars(text.data(), text.data() + text.size(), kib);
  return kib;
}

void touch(volatile char* first, std::size_t bytes, std::size_t page) noexcept {
  for (std::size_t at = 0; at < bytes; at += page) first[at] = 0;
}

// Calls `touch_all` until it faults no more. A page can fault again (NUMA balancing, memory pressure).
template <typename TouchAll>
bool touch_until_quiet(TouchAll touch_all) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    const std::int64_t before = thread_faults();
    if (!touch_all()) return false;
    if (thread_faults() == before) return true;
  }
  return false;
}

// Bytes between the stack pointer and the stack's end.
std::size_t stack_left_bytes() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* lowest = nullptr;
  std::size_t bytes = 0;
  pthread_attr_getstack(&attributes, &lowest, &bytes);
  pthread_attr_destroy(&attributes);
  const char here = 0;
  const auto distance = reinterpret_cast<std::uintptr_t>(&here) - reinterpret_cast<std::uintptr_t>(lowest);
  return distance <= bytes ? distance : 0;
}

[[gnu::noinline]] bool touch_stack(std::size_t bytes, std::size_t page) {
  touch(static_cast<volatile char*>(alloca(bytes)), bytes, page);
  return true;
}

[[gnu::noinline]] bool touch_heap(std::size_t bytes, std::size_t page) {
  const std::unique_ptr<void, decltype(&std::free)> block(std::malloc(bytes), &std::free);
  if (!block) return false;
  touch(static_cast<volatile char*>(block.get()), bytes, page);
  return true;
}

}  // namespace

void lock_memory() {
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    const int error = errno;
    if ((error != EPERM && error != ENOMEM) || has_capability(CAP_IPC_LOCK)) {
      throw system_failure("lock_memory", "true", "mlockall", error);
    }
    throw Failure(
        "lock_memory", "true",
        "no permission: RLIMIT_MEMLOCK is " + limit_text(resource_limit(RLIMIT_MEMLOCK)) +
            " bytes, the process has " + std::to_string(status_kib("VmSize") * 1024) +
            " mapped and lacks CAP_IPC_LOCK",
        "raise the limit: `sudo prlimit --pid $$ --memlock=unlimited` in this shell, or for good "
        "`@realtime - memlock unlimited` in /etc/security/limits.conf and a new login (in a container "
        "`docker run --ulimit memlock=-1`); or give the capability (`sudo setcap cap_ipc_lock+ep PROBE`)");
  }
  // Whatever is writable and the process's own must be locked now.
  const std::int64_t locked_kib = status_kib("VmLck"), own_kib = status_kib("VmData") + status_kib("VmStk");
  if (locked_kib < own_kib) {
    throw Failure("lock_memory", "true",
                  "mlockall succeeded but VmLck is " + std::to_string(locked_kib) + " KiB of " +
                      std::to_string(own_kib) + " KiB of data and stack",
                  "something in the process undoes mlockall (sanitizers do): run a plain build");
  }
}

void prefault_stack(std::int64_t bytes) {
  if (bytes <= 0) return;
  constexpr std::size_t kReserve = 64 * 1024;  // for what is called while touching
  const auto wanted = static_cast<std::size_t>(bytes);
  const std::size_t left = stack_left_bytes();
  if (static_cast<std::uint64_t>(bytes) + kReserve > left) {
    throw Failure("prefault_stack_bytes", std::to_string(bytes),
                  "the thread's stack has only " + std::to_string(left) + " bytes left (RLIMIT_STACK is " +
                      limit_text(resource_limit(RLIMIT_STACK)) + " bytes)",
                  "ask for less, or raise the limit: `ulimit -s` in KiB, before the probe starts");
  }
  if (!touch_until_quiet([&] { return touch_stack(wanted, page_bytes()); })) {
    throw Failure("prefault_stack_bytes", std::to_string(bytes),
                  "the stack's pages fault again after being touched",
                  "set lock_memory too, and free memory");
  }
}

void share_one_heap() {
  if (mallopt(M_ARENA_MAX, 1) != 1)
    throw Failure("prefault_heap_bytes", "", "this allocator cannot be told to use one heap for all threads",
                  "run a plain build without a replaced malloc, or leave the setting out");
}

void prefault_heap(std::int64_t bytes) {
  if (bytes <= 0) return;
  if (mallopt(M_TRIM_THRESHOLD, -1) != 1 || mallopt(M_MMAP_MAX, 0) != 1) {
    throw Failure("prefault_heap_bytes", std::to_string(bytes),
                  "this allocator cannot be told to keep its memory",
                  "run a plain build without a replaced malloc, or leave the setting out");
  }
  if (static_cast<std::uint64_t>(bytes) > PTRDIFF_MAX ||
      !touch_until_quiet([&] { return touch_heap(static_cast<std::size_t>(bytes), page_bytes()); })) {
    throw Failure("prefault_heap_bytes", std::to_string(bytes),
                  "the allocator has not so much memory or does not keep it after free() (RLIMIT_DATA is " +
                      limit_text(resource_limit(RLIMIT_DATA)) + ", RLIMIT_AS is " +
                      limit_text(resource_limit(RLIMIT_AS)) + ", MemAvailable " +
                      status_value("/proc/meminfo", "MemAvailable").value_or("unknown") + ")",
                  "ask for less, or run without a replaced malloc");
  }
}

}  // namespace rtmeter
