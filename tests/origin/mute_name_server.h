// A name server that never answers.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "config/config.h"
#include "proxy/net/socket.h"
#include "tests/catch.h"

namespace encore::server {

class MuteNameServer {
 public:
  MuteNameServer() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0);
    socklen_t size = sizeof(name);
    REQUIRE(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
    port_ = ntohs(name.sin_port);
  }
  void use(config::Config& config) const {
    config.upstream.nameservers = {"127.0.0.1:" + std::to_string(port_)};
  }

 private:
  net::Socket socket_;
  std::uint16_t port_ = 0;
};

}  // namespace encore::server
