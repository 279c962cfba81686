#include "address.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <optional>

#include "rtmeter/adapter.hpp"
#include "system.hpp"

namespace rtmeter_posix {
namespace {

constexpr const char* kIpRemedy = "give IP or IP:port, such as 192.168.0.2:7400 or [::1]:7400";

struct HostPort {
  std::string host;
  std::optional<std::string> port;
};

// An IPv6 address has colons of its own, so a port needs brackets before it.
HostPort split(const std::string& text) {
  if (!text.empty() && text.front() == '[') {
    const auto end = text.find(']');
    if (end + 1 == text.size()) return {text.substr(1, end - 1), std::nullopt};
    if (end == std::string::npos || text[end + 1] != ':') return {text, std::nullopt};
    return {text.substr(1, end - 1), text.substr(end + 2)};
  }
  const auto colon = text.find(':');
  if (colon == std::string::npos || text.find(':', colon + 1) != std::string::npos)
    return {text, std::nullopt};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace

Address ip_address(const std::string& text, const std::string& field) {
  const HostPort parts = split(text);
  const std::string port = parts.port.value_or("0");
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number > 65535)
    throw rtmeter::SetupError(field, text, "the port is not a number from 0 to 65535", kIpRemedy);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (parts.host.empty() || getaddrinfo(parts.host.c_str(), port.c_str(), &hints, &found) != 0)
    throw rtmeter::SetupError(field, text, "this is not an IP address", kIpRemedy);
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

Address unix_address(const std::string& text, const std::string& field) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (text.size() < 2 || (text.front() != '/' && text.front() != '@'))
    throw rtmeter::SetupError(field, text, "this names no Unix socket",
                              "give an absolute path, or @ and a name");
  if (text.size() >= sizeof name.sun_path)
    throw rtmeter::SetupError(
        field, text, "longer than " + std::to_string(sizeof name.sun_path - 1) + " characters, Linux's limit",
        "choose a shorter path, or @ and a name");
  std::copy(text.begin(), text.end(), name.sun_path);
  const bool abstract = text.front() == '@';
  if (abstract) name.sun_path[0] = '\0';
  Address address;
  std::memcpy(&address.storage, &name, sizeof name);
  // An abstract name ends where its length says, a path with a zero.
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() + (abstract ? 0 : 1));
  return address;
}

void remove_dead_socket(const Address& address, int type) {
  const std::string name = to_string(address);
  struct stat found{};
  if (name.front() != '/' || lstat(name.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return;
  const Fd probe(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(probe.get(), address.get(), address.length) != 0 && errno == ECONNREFUSED) unlink(name.c_str());
}

int port_of(const Address& address) {
  if (address.family() == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
  if (address.family() == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
  return 0;
}

std::string to_string(const Address& address) {
  if (address.family() == AF_UNIX) {
    const auto* name = reinterpret_cast<const sockaddr_un*>(&address.storage);
    if (name->sun_path[0] != '\0') return name->sun_path;
    return "@" + std::string(name->sun_path + 1, address.length - offsetof(sockaddr_un, sun_path) - 1);
  }
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  getnameinfo(address.get(), address.length, host, sizeof host, port, sizeof port,
              NI_NUMERICHOST | NI_NUMERICSERV);
  return address.family() == AF_INET6 ? "[" + std::string(host) + "]:" + port
                                      : std::string(host) + ":" + port;
}

Address bound_address(int socket_fd) {
  Address address;
  address.length = sizeof address.storage;
  getsockname(socket_fd, address.get(), &address.length);
  return address;
}

}  // namespace rtmeter_posix
