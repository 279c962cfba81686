// The middleware that this template measures, so that it runs: datagrams between two processes, of one
// session. Yours takes its place. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

namespace tiny_udp {

constexpr std::size_t kMostBytes = 65'507 - 2 * sizeof(std::uint64_t);

using OnMessage = std::function<void(std::uint64_t sequence, const std::uint8_t* data, std::size_t bytes)>;

inline sockaddr_in address_of(const std::string& ip, int port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, ip.c_str(), &a.sin_addr) != 1) throw std::invalid_argument("no IPv4 address: " + ip);
  return a;
}

// One end. It hears its own session only; a server learns where its client is from what it hears.
class End {
 public:
  explicit End(std::uint64_t session) : session_(session), buffer_(kMostBytes + sizeof(Header)) {
    if (socket_ < 0 || wake_ < 0) throw std::system_error(errno, std::generic_category(), "socket");
  }
  ~End() {
    close(socket_);
    close(wake_);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  // The port that it listens on.
  int listen(const std::string& ip) {
    sockaddr_in own = address_of(ip, 0);
    socklen_t size = sizeof own;
    auto* address = reinterpret_cast<sockaddr*>(&own);
    if (bind(socket_, address, size) != 0 || getsockname(socket_, address, &size) != 0)
      throw std::system_error(errno, std::generic_category(), "bind");
    return ntohs(own.sin_port);
  }
  void look_for(const std::string& ip, int port) { peer_ = address_of(ip, port); }
  void hear(OnMessage on_message) { on_message_ = std::move(on_message); }

  // False if it could not be sent.
  bool send(std::uint64_t sequence, const std::uint8_t* data, std::size_t bytes) noexcept {
    Header header{session_, sequence};
    iovec parts[] = {{&header, sizeof header}, {const_cast<std::uint8_t*>(data), bytes}};
    msghdr message{};
    message.msg_name = &peer_;
    message.msg_namelen = sizeof peer_;
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    // Nobody there is no error of the sender's.
    return sendmsg(socket_, &message, MSG_DONTWAIT) >= 0 || errno == ECONNREFUSED;
  }

  // Waits for messages (-1: for ever) and hears those that are there. False after interrupt().
  bool spin_once(int timeout_ms) {
    pollfd ready[] = {{socket_, POLLIN, 0}, {wake_, POLLIN, 0}};
    poll(ready, 2, timeout_ms);
    for (int n = 0; n < kBurst && take(); ++n) continue;
    eventfd_t times;
    return (ready[1].revents & POLLIN) == 0 || eventfd_read(wake_, &times) != 0;
  }
  void interrupt() noexcept { eventfd_write(wake_, 1); }

 private:
  struct Header {
    std::uint64_t session, sequence;
  };
  static constexpr int kBurst = 1024;

  bool take() {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    auto* address = reinterpret_cast<sockaddr*>(&from);
    const ssize_t got = recvfrom(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT, address, &size);
    if (got < 0) return false;
    Header header;
    if (static_cast<std::size_t>(got) < sizeof header) return true;
    std::copy_n(buffer_.data(), sizeof header, reinterpret_cast<std::uint8_t*>(&header));
    if (header.session != session_ || !on_message_) return true;
    peer_ = from;
    on_message_(header.sequence, buffer_.data() + sizeof header,
                static_cast<std::size_t>(got) - sizeof header);
    return true;
  }

  const int socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  const std::uint64_t session_;
  sockaddr_in peer_{};
  OnMessage on_message_;
  std::vector<std::uint8_t> buffer_;
};

}  // namespace tiny_udp
