// ClientTls: the result of a client's TLS handshake, as far as its requests need it. Immutable,
// shared by the units that handle them; thread-safe.
#pragma once

#include <string>

namespace encore::server {

struct ClientTls {
  std::string version;      // "TLSv1.3"
  std::string cipher;       // "TLS_AES_128_GCM_SHA256"
  std::string server_name;  // as the client has said it; empty: it has not
  bool resumed = false;
  std::string subject;      // subject of its certificate; empty: it has shown none
  std::string fingerprint;  // the SHA-256 of it, hexadecimal digits
};

}  // namespace encore::server
