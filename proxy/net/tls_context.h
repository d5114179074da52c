// What tls_server.cc and tls_callbacks.cc share. For these two only.
#pragma once

#include <string>
#include <vector>

#include "proxy/net/tls_identity.h"
#include "proxy/net/tls_server.h"

namespace encore::net {

// One or more certificates, of different kinds of keys, that answer for the same names.
struct TlsServer::Context {
  OpenSsl<SSL_CTX> ssl;
  const TlsServer* server = nullptr;  // whose it is
  std::vector<const TlsIdentity*> members;
};

// Has OpenSSL ask the server for names, tickets, staples and protocols. Each session of the context
// holds the server.
Result<void> set_callbacks(TlsServer::Context& context);

}  // namespace encore::net
