// Messages as datagrams of one socket: what UDP and Unix sockets have in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "address.hpp"
#include "kernel_stamps.hpp"
#include "messaging.hpp"
#include "system.hpp"
#include "wire.hpp"

namespace rtmeter_posix {

// A client sends to its server, a server to whom it last heard a message of this run from. Datagrams
// that are not messages of this run, or longer than its payload, are ignored.
class Datagrams : public Messaging, protected Loop {
 public:
  void* create_publisher(void* node, const std::string& topic) override;
  void* create_subscriber(void* node, const std::string& topic, rtm_on_message on_message,
                          void* user) override;
  void describe(rtmeter::Sink& sink) const override;
  int publish(void* publisher, const rtm_message& message) noexcept override;
  Loop& loop() noexcept override { return *this; }

 protected:
  // Makes an unbound socket.
  Datagrams(const rtm_run& run, int family);

  int socket_fd() const noexcept { return socket_.get(); }
  bool is_server() const noexcept { return role_ == RTM_ROLE_SERVER; }
  std::size_t datagram_bytes() const noexcept { return buffer_.size(); }
  // Binds; the error names the field and the address.
  void bind_to(const Address& address, const std::string& field, const std::string& remedy);
  // From now on sends to `server` and hears nobody else; false if nobody is there yet, then a later
  // publish() tries again.
  bool connect_to(const Address& server) noexcept;
  // From now on the kernel stamps what is sent and received, and on_stamp is told.
  void stamp_messages(rtm_on_stamp on_stamp, void* user) { stamps_.begin(socket_.get(), on_stamp, user); }

 private:
  struct Topic {
    std::uint64_t tag;
    Subscription subscription;
  };

  int next(std::int64_t timeout_ns) noexcept override;
  int dispatch(int at_most) noexcept override;
  int receive(int flags) noexcept;
  bool deliver(std::size_t size, const Address& from, std::int64_t realtime_ns) noexcept;
  std::uint64_t tag(const std::string& topic) const { return tag_of(session_ + "/" + topic); }

  const rtm_role role_;
  const std::string session_;
  Fd socket_;
  std::vector<std::uint8_t> buffer_;  // one datagram, the largest to come
  std::deque<std::uint64_t> publishers_;  // tags; addresses are the handles
  std::deque<Topic> topics_;
  Address peer_;
  bool connected_ = false;
  KernelStamps stamps_;
};

}  // namespace rtmeter_posix
