// TlsContext: what TLS connections of one kind have in common: certificates, whom to trust, stored
// sessions. Thread-safe once made: workers share one.
//
// TLS 1.2 and 1.3 only. Clients verify by default; there is no other way to switch that off than
// to say so. ALPN offers http/1.1.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"

namespace encore::net {

class TlsSession;
struct TlsShared;

// Destroys what only net/ knows.
struct TlsSessionDeleter {
  void operator()(TlsSession* session) const;
};
using TlsSessionPointer = std::unique_ptr<TlsSession, TlsSessionDeleter>;

class TlsContext {
 public:
  struct ClientOptions {
    std::string ca_file = {};  // PEM; empty: the system's certificates
    bool verify_peer = true;   // chain, dates and host name
    // Ours, for servers that ask for one; PEM, leaf first, then the chain. Empty: none.
    std::string certificate_file = {};
    std::string key_file = {};
  };
  struct ServerOptions {
    std::string certificate_file;  // PEM, leaf first, then the chain
    std::string key_file;          // PEM
  };

  // Errors show the file and OpenSSL's reason.
  static Result<TlsContext> client(const ClientOptions& options);
  static Result<TlsContext> server(const ServerOptions& options);
  TlsContext(TlsContext&&) noexcept;
  TlsContext& operator=(TlsContext&&) noexcept;
  ~TlsContext();

  // One connection's state, for the constructor of Stream. For a client, `host` (a name, or an
  // address without brackets) is what the certificate must be for, and is sent as SNI where it is
  // a name; `session_key` ("host:port") finds a session to take up again, empty for none. A server
  // gives neither. It may outlive the context. Null where memory is out or the host is not usable.
  TlsSessionPointer session(const std::string& host = {},
                            const std::string& session_key = {}) const;

 private:
  explicit TlsContext(std::shared_ptr<TlsShared> shared);
  std::shared_ptr<TlsShared> shared_;
};

}  // namespace encore::net
