// What services and actions send, in C: a number and bytes, wherever they stand in a message.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rcl/error_handling.h>
#include <rosidl_runtime_c/primitives_sequence_functions.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "rtmeter/adapter.hpp"

namespace rtmeter_rcl {

// What rcl has no result for: the next call would complain that it was not read.
template <typename Result>
int done(Result result) noexcept {
  if (result == RCL_RET_OK) return 0;
  rcl_reset_error();
  return -1;
}

inline rtmeter::SetupError no_memory(std::uint32_t payload_bytes) {
  return rtmeter::SetupError("payload_bytes", std::to_string(payload_bytes), "there is no memory for it",
                             "choose a smaller payload");
}

// A message of rosidl's, from its init to its fini.
template <typename T, bool (*Init)(T*), void (*Fini)(T*)>
class Owned {
 public:
  Owned() {
    if (!Init(&message_)) throw no_memory(0);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { Fini(&message_); }
  T* get() { return &message_; }
  T* operator->() { return &message_; }
  T& operator*() { return message_; }

 private:
  T message_{};
};

#define RTMETER_OWNED(T) Owned<T, &T##__init, &T##__fini>

template <typename T>
void make_room(T& body, std::uint32_t payload_bytes) {
  if (!rosidl_runtime_c__uint8__Sequence__init(&body.payload, payload_bytes)) throw no_memory(payload_bytes);
}
template <typename T>
rtm_message view(const T& body) {
  return {body.sequence, body.payload.data, static_cast<std::uint32_t>(body.payload.size)};
}
// No more bytes than there is room for. Measured path.
template <typename T>
void set(T& body, const rtm_message& message) noexcept {
  body.sequence = message.sequence;
  body.payload.size = std::min<std::size_t>(message.bytes, body.payload.capacity);
  std::memcpy(body.payload.data, message.data, body.payload.size);
}

}  // namespace rtmeter_rcl
