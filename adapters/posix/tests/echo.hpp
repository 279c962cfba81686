// A server that sends back what it hears, and a client that asks it, as the core's round trip does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "harness.hpp"

namespace rtmeter_posix {

constexpr std::int64_t kSecondNs = 1'000'000'000;

inline std::vector<std::uint8_t> pattern(std::size_t bytes, std::uint64_t sequence) {
  std::vector<std::uint8_t> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::uint8_t>(i * 7 + sequence * 13);
  return data;
}

inline Asked asked_roundtrip(rtm_role role, const char* transport, std::uint32_t payload_bytes = 500) {
  Asked asked;
  asked.measurement = RTM_ROUNDTRIP;
  asked.role = role;
  asked.options = {{"transport", transport}};
  asked.payload_bytes = payload_bytes;
  return asked;
}

// Spins in a thread of its own, or by serve() in a process of its own.
class EchoServer {
 public:
  explicit EchoServer(const Asked& asked, rtm_on_stamp on_stamp = nullptr, void* user = nullptr)
      : instance_(asked) {
    if (!instance_.started()) return;
    void* node = instance_.node("server");
    if (on_stamp != nullptr) instance_.tell_stamps(node, on_stamp, user);
    publisher_ = instance_.publisher(node, "pong");
    instance_.subscriber(node, "ping", &EchoServer::on_ping, this);
  }
  ~EchoServer() { stop(); }

  void start() {
    thread_ = std::thread([this] { serve(); });
  }
  void serve() {
    while (!done_.load()) instance_.spin(INT64_MAX);
  }
  // Once it has done all that belongs to what was asked; it may start again.
  void stop() {
    if (!thread_.joinable()) return;
    done_.store(true);
    instance_.interrupt();
    thread_.join();
    done_.store(false);
  }
  std::string endpoint() const { return instance_.described().at("endpoint"); }
  Instance& instance() { return instance_; }
  std::uint64_t heard() const { return heard_.load(); }

 private:
  static void on_ping(void* user, const rtm_message* m) {
    auto* self = static_cast<EchoServer*>(user);
    self->heard_.fetch_add(1);
    EXPECT_EQ(self->instance_.publish(self->publisher_, *m), 0);
  }

  Instance instance_;
  void* publisher_ = nullptr;
  std::thread thread_;
  std::atomic<bool> done_{false};
  std::atomic<std::uint64_t> heard_{0};
};

// Asks and waits; all in the calling thread.
class EchoClient {
 public:
  explicit EchoClient(const Asked& asked, rtm_on_stamp on_stamp = nullptr, void* user = nullptr)
      : instance_(asked), payload_bytes_(asked.payload_bytes) {
    if (!instance_.started()) return;
    void* node = instance_.node("client");
    if (on_stamp != nullptr) instance_.tell_stamps(node, on_stamp, user);
    publisher_ = instance_.publisher(node, "ping");
    instance_.subscriber(node, "pong", &EchoClient::on_pong, this);
  }

  int send(std::uint64_t sequence, std::uint32_t bytes) {
    const std::vector<std::uint8_t> data = pattern(bytes, sequence);
    return instance_.publish(publisher_, {sequence, data.data(), bytes});
  }
  // True once the reply came; it must be what was sent.
  bool ask(std::uint64_t sequence, std::uint32_t bytes) {
    const std::size_t before = heard_;
    if (send(sequence, bytes) != 0) return false;
    for (const std::int64_t end = monotonic_ns() + 60 * kSecondNs; heard_ == before && monotonic_ns() < end;)
      EXPECT_EQ(instance_.wait(kSecondNs), 0);
    return heard_ == before + 1 && last_sequence_ == sequence && last_bytes_ == bytes;
  }
  bool ask(std::uint64_t sequence) { return ask(sequence, payload_bytes_); }

  Instance& instance() { return instance_; }
  std::size_t heard() const { return heard_; }

 private:
  static void on_pong(void* user, const rtm_message* m) {
    auto* self = static_cast<EchoClient*>(user);
    ++self->heard_;
    self->last_sequence_ = m->sequence;
    self->last_bytes_ = m->bytes;
    const std::vector<std::uint8_t> data = pattern(m->bytes, m->sequence);
    EXPECT_EQ(memcmp(m->data, data.data(), m->bytes), 0) << "sequence " << m->sequence;
  }

  Instance instance_;
  const std::uint32_t payload_bytes_;
  void* publisher_ = nullptr;
  std::size_t heard_ = 0;
  std::uint64_t last_sequence_ = 0;
  std::uint32_t last_bytes_ = 0;
};

inline Asked client_of(const EchoServer& server, const char* transport, std::uint32_t payload_bytes = 500) {
  Asked asked = asked_roundtrip(RTM_ROLE_CLIENT, transport, payload_bytes);
  asked.options.emplace_back("endpoint", server.endpoint());
  return asked;
}

}  // namespace rtmeter_posix
