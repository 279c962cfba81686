#include "system/memory.hpp"

#include <alloca.h>
#include <linux/capability.h>
#include <sys/mman.h>

#include <cstdlib>
#include <functional>
#include <thread>

#include "child.hpp"
#include "emulated.hpp"
#include "sanitized.hpp"

namespace rtmeter {
namespace {

using namespace testing_help;

// What other tests of a process leave of its heap is not what these mean.
#define NEEDS_A_FRESH_HEAP()                                       \
  if (testing::UnitTest::GetInstance()->test_to_run_count() > 1) { \
    GTEST_SKIP() << "runs by itself, as ctest runs it";            \
  }

constexpr std::size_t kBytes = 1 << 20;

std::int64_t faults() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

template <typename Body>
std::int64_t faults_of(Body body) {
  const std::int64_t before = faults();
  body();
  return faults() - before;
}

void write_each_page(void* block, std::size_t bytes) {
  auto* bytes_of = static_cast<volatile char*>(block);
  for (std::size_t at = 0; at < bytes; at += 4096) bytes_of[at] = 1;
}

[[gnu::noinline]] void use_stack(std::size_t bytes) { write_each_page(alloca(bytes), bytes); }

// Threads are made in children only: each leaves a heap of its own behind, and so the tests of heaps another
// one than they mean.
void use_heap(std::size_t bytes) {
  void* block = std::malloc(bytes);
  write_each_page(block, bytes);
  std::free(block);
}

TEST(LockMemory, LocksWhatIsMappedAndWhatWillBe) {
  SKIP_UNDER_SANITIZERS();
  NEEDS_CAPABILITY(CAP_IPC_LOCK);
  EXPECT_EQ(in_child([] {
              lock_memory();
              void* block = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              return "faults " + std::to_string(faults_of([&] { write_each_page(block, kBytes); }));
            }),
            "faults 0");
}

TEST(LockMemory, ALowLimitIsNamed) {
  SKIP_UNDER_SANITIZERS();
  const std::string said = in_child([] {
    limit(RLIMIT_MEMLOCK, 65536);
    drop_privileges();
    return outcome_of([] { lock_memory(); });
  });
  EXPECT_CONTAINS(said, "lock_memory = true: no permission: RLIMIT_MEMLOCK is 65536 bytes");
  EXPECT_CONTAINS(said, "CAP_IPC_LOCK");
  EXPECT_CONTAINS(said, "prlimit --pid $$ --memlock=unlimited");
  EXPECT_CONTAINS(said, "/etc/security/limits.conf");
}

TEST(LockMemory, NoLimitAtAllIsNamed) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_CONTAINS(in_child([] {
                    limit(RLIMIT_MEMLOCK, 0);
                    drop_privileges();
                    return outcome_of([] { lock_memory(); });
                  }),
                  "RLIMIT_MEMLOCK is 0 bytes");
}

TEST(LockMemory, AnMlockallThatDoesNothingIsFound) {
#if !defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "only under the address sanitizer, whose mlockall does nothing";
#endif
  EXPECT_CONTAINS(outcome_of([] { lock_memory(); }), "mlockall succeeded but VmLck is 0 KiB");
}

TEST(PrefaultStack, LaterUseDoesNotFault) {
  SKIP_UNDER_EMULATION();
  const std::string without = in_child([] {
    std::int64_t faults = 0;
    std::thread([&] { faults = faults_of([] { use_stack(kBytes); }); }).join();
    return std::to_string(faults);
  });
  EXPECT_NE(without, "0") << "the control case must fault";
  EXPECT_EQ(in_child([] {
              std::int64_t with = -1;
              std::thread([&] {
                prefault_stack(2 * kBytes);
                with = faults_of([] { use_stack(kBytes); });
              }).join();
              return std::to_string(with);
            }),
            "0");
}

TEST(PrefaultStack, MoreThanTheStackIsRefused) {
  for (const std::int64_t bytes : {std::int64_t{1} << 40, INT64_MAX}) {
    const std::string said = outcome_of([&] { prefault_stack(bytes); });
    EXPECT_CONTAINS(said,
                    "prefault_stack_bytes = " + std::to_string(bytes) + ": the thread's stack has only ");
    EXPECT_CONTAINS(said, "RLIMIT_STACK is ");
    EXPECT_CONTAINS(said, "ulimit -s");
  }
}

TEST(PrefaultStack, WhatFitsBarelyFits) {
  SKIP_UNDER_SANITIZERS();
  const std::string said = in_child([] {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 20);
    std::string outcomes;
    const auto body = [](void* into) -> void* {
      *static_cast<std::string*>(into) = outcome_of([] { prefault_stack((1 << 20) - (128 << 10)); }) + "; " +
                                         outcome_of([] { prefault_stack(1 << 20); });
      return nullptr;
    };
    pthread_t thread{};
    if (pthread_create(&thread, &attributes, body, &outcomes) != 0) return std::string("no thread");
    pthread_join(thread, nullptr);
    return outcomes;
  });
  EXPECT_CONTAINS(said, "ok; prefault_stack_bytes = 1048576: the thread's stack has only ");
}

TEST(PrefaultHeap, LaterUseDoesNotFault) {
  SKIP_UNDER_EMULATION();
  SKIP_UNDER_SANITIZERS();
  NEEDS_A_FRESH_HEAP();
  EXPECT_NE(in_child([] { return std::to_string(faults_of([] { use_heap(kBytes); })); }), "0")
      << "the control case must fault";
  EXPECT_EQ(in_child([] {
              prefault_heap(2 * kBytes);
              return std::to_string(faults_of([] {
                for (int i = 0; i < 10; ++i) use_heap(kBytes);
              }));
            }),
            "0");
}

TEST(PrefaultHeap, LaterUseByAThreadDoesNotFaultWhereTheThreadPrefaults) {
  SKIP_UNDER_EMULATION();
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(in_child([] {
              std::int64_t with = -1;
              std::thread([&] {
                prefault_heap(8 * kBytes);
                with = faults_of([] { use_heap(kBytes); });
              }).join();
              return std::to_string(with);
            }),
            "0");
}

// The third thread comes while the others hold what they allocated: an arena for each would be made.
TEST(PrefaultHeap, ReachesEveryThreadOfASharedHeap) {
  SKIP_UNDER_EMULATION();
  SKIP_UNDER_SANITIZERS();
  NEEDS_A_FRESH_HEAP();
  const auto faults_of_threads = [](bool shared) {
    if (shared) share_one_heap();
    prefault_heap(8 * kBytes);
    std::int64_t sum = 0;
    const std::function<void(int)> start = [&](int threads) {
      if (threads == 0) return;
      std::thread([&] {
        use_heap(1);  // a thread's first steps fault on its stack
        void* block = nullptr;
        sum += faults_of([&] { write_each_page(block = std::malloc(kBytes), kBytes); });
        start(threads - 1);
        std::free(block);
      }).join();
    };
    start(3);
    return std::to_string(sum);
  };
  EXPECT_NE(in_child([&] { return faults_of_threads(false); }), "0") << "the control case must fault";
  EXPECT_EQ(in_child([&] { return faults_of_threads(true); }), "0");
}

TEST(PrefaultHeap, MoreThanThereIsIsRefused) {
  SKIP_UNDER_EMULATION();
  SKIP_UNDER_SANITIZERS();
  const std::string said = in_child([] {
    limit(RLIMIT_AS, 256 << 20);
    return outcome_of([] { prefault_heap(std::int64_t{1} << 30); });
  });
  EXPECT_CONTAINS(said, "prefault_heap_bytes = 1073741824: ");
  EXPECT_CONTAINS(said, "RLIMIT_AS is 268435456");
}

TEST(PrefaultHeap, AnAllocatorThatCannotBeToldIsNamed) {
#if !defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "only under the address sanitizer, whose mallopt does nothing";
#endif
  EXPECT_CONTAINS(outcome_of([] { prefault_heap(4096); }), "prefault_heap_bytes = 4096: ");
}

TEST(Prefault, NothingAskedIsNothingDone) {
  EXPECT_EQ(outcome_of([] {
              prefault_stack(0);
              prefault_heap(0);
            }),
            "ok");
}

}  // namespace
}  // namespace rtmeter
