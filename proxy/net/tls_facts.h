// Result of a handshake of OpenSSL. For net/ only.
#pragma once

#include "proxy/net/tls.h"

struct ssl_st;

namespace encore::net {

// REQUIRES: the handshake is done. The views hold as long as `ssl`.
TlsFacts facts_of(const ssl_st* ssl);

}  // namespace encore::net
