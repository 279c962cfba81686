// Stands in for the C library's allocator (its manual, "Replacing malloc"), and passes on to it.
#include <cerrno>
#include <cstdlib>

#include "traps.hpp"

// The C library's own names for them.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

void note() noexcept {
  using namespace rtmeter::traps;
  if (watching()) ++counts().allocations[side_now()];
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) noexcept {
  note();
  return __libc_malloc(bytes);
}

void* calloc(std::size_t count, std::size_t bytes) noexcept {
  note();
  return __libc_calloc(count, bytes);
}

void* realloc(void* block, std::size_t bytes) noexcept {
  note();
  return __libc_realloc(block, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  note();
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept { return memalign(alignment, bytes); }

int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) noexcept {
  *block = memalign(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}

void free(void* block) noexcept {
  if (block != nullptr) note();
  __libc_free(block);
}

}  // extern "C"
