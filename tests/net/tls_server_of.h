// A TLS server of one certificate, for tests.
#pragma once

#include <memory>
#include <string>

#include "proxy/net/tls_server.h"
#include "tests/catch.h"

namespace encore::net {

inline std::shared_ptr<const TlsServer> tls_server_of(const std::string& certificate_file,
                                                      const std::string& key_file,
                                                      WallTime now = wall_now()) {
  auto tickets = TlsTickets::create(monotonic_now());
  REQUIRE(tickets.has_value());
  auto server =
      TlsServer::create({.pairs = {{certificate_file, key_file}}, .tickets = *tickets, .now = now});
  REQUIRE(server.has_value());
  return *server;
}

}  // namespace encore::net
