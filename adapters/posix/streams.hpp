// Requests over a stream, Unix or TCP: each a frame of the wire's header and the payload, and so its reply.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "address.hpp"
#include "loop.hpp"
#include "rtmeter/adapter.hpp"
#include "system.hpp"
#include "wire.hpp"

namespace rtmeter_posix {

// One end. A server has one client at a time; one that is lost leaves the client nothing but refused calls.
class Stream final : public Loop {
 public:
  // Connects, or listens; a client whose server is not there yet connects as it calls.
  Stream(const rtm_run& run, int family);
  ~Stream() override;

  // Setup, as in the contract.
  void* create_client(const std::string& service, rtm_on_reply on_reply, void* user);
  void* create_server(const std::string& service, rtm_on_message on_request, void* user);
  void describe(rtmeter::Sink& sink) const;

  // Measured path: the request, or its reply.
  int send(const rtm_message& message) noexcept;

 private:
  int next(std::int64_t timeout_ns) noexcept override;
  int dispatch(int at_most) noexcept override;
  int receive(int flags) noexcept;
  int deliver() noexcept;
  int accept_one(std::int64_t timeout_ns) noexcept;
  void connect_to_server() noexcept;
  void lose() noexcept;
  bool is_server() const noexcept { return role_ == RTM_ROLE_SERVER; }

  const rtm_role role_;
  const std::string session_;
  Address address_;
  std::string path_;  // to unlink
  Fd listener_, stream_;
  std::atomic<bool> lost_{false};  // the client's stream has ended: told by who receives to who sends
  std::uint64_t tag_ = 0;
  rtm_on_message on_request_ = nullptr;
  rtm_on_reply on_reply_ = nullptr;
  void* user_ = nullptr;
  std::vector<std::uint8_t> frame_, out_;  // what comes in, as far as it has; what goes out
  std::size_t filled_ = 0;
};

using MakeStream = std::unique_ptr<Stream> (*)(const rtm_run& run);
std::unique_ptr<Stream> make_unix_stream(const rtm_run& run);
std::unique_ptr<Stream> make_tcp_stream(const rtm_run& run);

}  // namespace rtmeter_posix
