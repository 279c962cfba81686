// Socket addresses as users write them: "IP", "IP:port", "[IPv6]:port", "/a/path" or "@abstract-name".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <string>

namespace rtmeter_posix {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const noexcept { return storage.ss_family; }
};

// "@" starts an abstract name. Throws SetupError naming `field`: not a path, too long.
Address unix_address(const std::string& text, const std::string& field);
// Of a path, the socket of this type (SOCK_...) that a killed server left there is removed: it refuses
// whoever connects.
void remove_dead_socket(const Address& address, int type);
// A numeric address; a port that is missing is 0. Throws SetupError naming `field`.
Address ip_address(const std::string& text, const std::string& field);
// 0 for other than IP.
int port_of(const Address& address);
// As ip_address() and unix_address() read it.
std::string to_string(const Address& address);
// The address that a socket is bound to.
Address bound_address(int socket_fd);

}  // namespace rtmeter_posix
