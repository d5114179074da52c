#include "proxy/net/socket_options.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "proxy/net/syscalls.h"

namespace encore::net {
namespace {

void set_option(const Socket& socket, int level, int option, int value) {
  // None of these can fail on a TCP socket, and a connection works without them.
  ::setsockopt(socket.get(), level, option, &value, sizeof value);
}

}  // namespace

Socket open_tcp(int family) {
  return Socket(syscalls.socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void set_connection_options(const Socket& socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  // 60 s of silence, then 4 questions 15 s apart.
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 15);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

Result<Socket> listen_on(const Address& address, int backlog, SharePort share) {
  const auto failed = [&] { return fail("cannot listen on " + describe(address, errno)); };
  Socket socket = open_tcp(address.family());
  if (!socket) return failed();
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (share == SharePort::kYes) set_option(socket, SOL_SOCKET, SO_REUSEPORT, 1);
  // "::" means every address, of IPv4 too, whatever the machine's default is.
  if (address.is_v6()) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  set_connection_options(socket);
  if (::bind(socket.get(), address.data(), address.size()) != 0) return failed();
  if (::listen(socket.get(), backlog) != 0) return failed();
  return socket;
}

Result<void> check_unused(const Address& address) {
  const auto failed = [&] { return fail("cannot listen on " + describe(address, errno)); };
  const Socket socket = open_tcp(address.family());
  if (!socket) return failed();
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.is_v6()) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(socket.get(), address.data(), address.size()) != 0) return failed();
  return {};
}

Address bound_address(const Socket& socket) {
  sockaddr_storage storage;
  socklen_t size = sizeof storage;
  auto* any = reinterpret_cast<sockaddr*>(&storage);
  if (::getsockname(socket.get(), any, &size) != 0) return {};
  return Address::from_sockaddr(any, size).value_or(Address());
}

std::optional<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  path.copy(address.sun_path, path.size());
  return address;
}

std::string describe(const Address& address, int os_error) {
  return address.to_string() + ": " + std::generic_category().message(os_error);
}

}  // namespace encore::net
