// TlsContext: what TLS connections to servers have in common: whom to trust, a certificate of our
// own, stored sessions. Thread-safe once made: workers share one. TlsServer is its counterpart.
//
// TLS 1.2 and 1.3 only. The server is verified by default; there is no other way to switch that off
// than to say so. ALPN offers http/1.1, and h2 in front of it if that is wanted.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace encore::net {

class TlsSession;
struct TlsShared;

// Destroys what only net/ knows.
struct TlsSessionDeleter {
  void operator()(TlsSession* session) const;
};
using TlsSessionPointer = std::unique_ptr<TlsSession, TlsSessionDeleter>;

// Result of a handshake. The views are valid as long as the session.
struct TlsFacts {
  std::string_view version;      // "TLSv1.3"
  std::string_view cipher;       // "TLS_AES_128_GCM_SHA256"
  std::string_view server_name;  // as the client has said it; empty: it has not
  std::string_view alpn;         // empty: none
  bool resumed = false;
  // Properties of the client's certificate, if one was requested and shown: "CN=..." (RFC 2253) and
  // the SHA-256 of the whole in hexadecimal digits.
  std::string subject = {};
  std::string fingerprint = {};
};

class TlsContext {
 public:
  struct ClientOptions {
    std::string ca_file = {};  // PEM; empty: the system's certificates
    bool verify_peer = true;   // chain, dates and host name
    // Ours, for servers that ask for one; PEM, leaf first, then the chain. Empty: none.
    std::string certificate_file = {};
    std::string key_file = {};
    bool http2 = false;  // offered: TlsFacts::alpn says what was chosen
  };
  // Errors show the file and OpenSSL's reason.
  static Result<TlsContext> client(const ClientOptions& options);
  TlsContext(TlsContext&&) noexcept;
  TlsContext& operator=(TlsContext&&) noexcept;
  ~TlsContext();

  // One connection's state, for the constructor of Stream. `host` (a name, or an address without
  // brackets) is what the certificate must be for, and is sent as SNI where it is a name;
  // `session_key` ("host:port") finds a session to take up again, empty for none. It may outlive
  // the context. Null where memory is out or the host is not usable.
  TlsSessionPointer session(const std::string& host, const std::string& session_key = {}) const;

 private:
  explicit TlsContext(std::shared_ptr<TlsShared> shared);
  std::shared_ptr<TlsShared> shared_;
};

}  // namespace encore::net
