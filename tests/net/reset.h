// The end of a connection that its peer sees as a reset.
#pragma once

#include <sys/socket.h>

#include "proxy/net/socket.h"
#include "tests/catch.h"

namespace encore::net {

inline void reset_connection(Socket& socket) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  REQUIRE(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0);
  socket = Socket();
}

}  // namespace encore::net
