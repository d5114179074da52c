// A listener that answers nobody: its backlog is full, and the kernel ignores further SYNs.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <vector>

#include "proxy/net/socket.h"
#include "tests/catch.h"

namespace encore::net {

// Fills the backlog of a bound IPv4 socket, which nobody may accept from any more. The sockets that
// are returned hold its places.
inline std::vector<Socket> fill_backlog(const Socket& listener) {
  constexpr int kPlaces = 3;
  REQUIRE(::listen(listener.get(), 0) == 0);
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size) == 0);
  std::vector<Socket> fillers;
  for (int i = 0; i < kPlaces; ++i) {
    fillers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    ::connect(fillers.back().get(), reinterpret_cast<sockaddr*>(&bound), sizeof bound);
  }
  return fillers;
}

}  // namespace encore::net
