#include "loop.hpp"

#include "system.hpp"

namespace rtmeter_posix {

// interrupt() sets its flag, then looks at blocked_; the loop sets blocked_, then looks at the flag. In
// sequential consistency one of them sees the other, so no interrupt is missed, and one from within a
// callback costs no system call.
void Loop::interrupt() noexcept {
  interrupted_.store(true);
  if (blocked_.load()) wake();
}

int Loop::block_unless_interrupted(std::int64_t timeout_ns) noexcept {
  blocked_.store(true);
  const int result = interrupted_.load() ? 0 : block(timeout_ns);
  blocked_.store(false, std::memory_order_relaxed);
  return result;
}

int Loop::next(std::int64_t timeout_ns) noexcept {
  if (block_unless_interrupted(timeout_ns) < 0) return -1;
  return interrupted() ? 0 : dispatch(1);
}

int Loop::run(std::int64_t timeout_ns, bool once) noexcept {
  const std::int64_t deadline_ns = deadline_after(timeout_ns);
  std::int64_t left_ns = time_left(deadline_ns);
  for (;;) {
    const int callbacks = interrupted() ? 0 : next(left_ns);
    if (callbacks < 0) return -1;
    if (interrupted() || (once && callbacks > 0)) {
      interrupted_.store(false);
      return 0;
    }
    left_ns = time_left(deadline_ns);
    if (left_ns == 0) return 0;
  }
}

}  // namespace rtmeter_posix
