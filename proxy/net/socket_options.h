// How the sockets of the house are opened. For net/ only.
#pragma once

#include <sys/un.h>

#include <optional>
#include <string>

#include "base/error.h"
#include "proxy/net/address.h"
#include "proxy/net/socket.h"

namespace encore::net {

// A TCP socket, or one of AF_UNIX, that does not block and is not inherited by other programs. None
// with errno where there is none to be had.
Socket open_tcp(int family);

// No Nagle delay; keepalive that finds a vanished peer in about two minutes. Set on a listening
// socket, every accepted one has them.
void set_connection_options(const Socket& socket);

// A listening socket whose connections have these options. Errors show the address.
enum class SharePort : bool { kNo, kYes };  // yes: SO_REUSEPORT
Result<Socket> listen_on(const Address& address, int backlog, SharePort share);

// An error where the address cannot be had alone: somebody listens there, be it with SO_REUSEPORT,
// or the machine has no such address.
Result<void> check_unused(const Address& address);

// Its own address, with the port that the kernel chose.
Address bound_address(const Socket& socket);

// Address of a Unix socket; nothing if the name is too long.
std::optional<sockaddr_un> unix_address(const std::string& path);

// "127.0.0.1:80: Connection refused"
std::string describe(const Address& address, int os_error);

}  // namespace encore::net
