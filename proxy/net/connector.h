// Connector: one attempt to get a connection to one of several addresses of a peer. Confined to
// its loop's thread; destroying it cancels.
//
// The addresses are tried in order; the next one starts when the one before failed, or after a
// short stagger while it is still silent (RFC 8305, in small). The first to connect wins.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "proxy/net/address.h"
#include "proxy/net/loop.h"
#include "proxy/net/stream.h"
#include "proxy/net/timer.h"

namespace encore::net {

class TlsContext;

enum class ConnectOutcome : std::uint8_t {
  kRefused,      // ECONNREFUSED
  kUnreachable,  // no route, network or host down
  kTimeout,      // no answer within the time given
  kTls,          // connected, but the handshake failed
  kTlsVerify,    // connected, but the certificate is not good
  kProxy,        // connected, but the proxy on the way refused the tunnel
  kError,        // another error of the system
};
std::string_view to_string(ConnectOutcome outcome);

// The head that asks a proxy for a tunnel. `fields` are whole lines of fields that go with it.
std::string tunnel_request(const std::string& authority, std::string_view fields = {});
// True if the head of an answer, from its beginning, opens it.
bool opens_tunnel(std::string_view head);
// The status of such a head; 0: it is none of HTTP/1.
int tunnel_status(std::string_view head);

// Failure of the last address that failed, or of one that answered and failed over TLS.
struct ConnectFailure {
  ConnectOutcome outcome = ConnectOutcome::kError;
  int os_error = 0;
  std::string message;                 // "127.0.0.1:81: Connection refused"
  std::string certificate_fault = {};  // with kTlsVerify: "certificate has expired"
  int proxy_status = 0;                // with kProxy: the status of its refusal; 0: none came
};

class Connector {
 public:
  // The stream has no handler and does not read yet: set_handler, resume_reading. Under TLS the
  // handshake is done. The callback comes once, from the loop, never from the constructor; it may
  // destroy the connector.
  using OnDone =
      std::move_only_function<void(std::expected<std::unique_ptr<Stream>, ConnectFailure> result)>;

  struct Options {
    std::vector<Address> addresses;  // at least one
    Nanoseconds stagger = std::chrono::milliseconds(250);
    Nanoseconds timeout = std::chrono::seconds(10);  // over all, handshake included
    const TlsContext* tls = nullptr;                 // borrowed until done; null: plain
    std::string tls_host = {};  // the name or address the certificate must be for
    // For a proxy on the path: the "host:port" of the CONNECT request to it; empty: there is none.
    // TLS is with the server behind it.
    std::string tunnel_to = {};
    std::string tunnel_fields = {};  // lines of fields that go with the CONNECT
    // For a Unix socket, in place of the address, of which there is one then; empty: none.
    std::string socket_file = {};
  };

  Connector(Loop& loop, Options options, OnDone on_done);
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;
  ~Connector();

 private:
  class Attempt;
  friend class Attempt;
  void start_next();
  void attempt_failed(Attempt& attempt, ConnectFailure failure);
  void time_is_up();
  void finish(std::expected<std::unique_ptr<Stream>, ConnectFailure> result);

  Loop& loop_;
  Options options_;
  OnDone on_done_;
  std::size_t next_ = 0;  // index of the next address to try
  std::vector<std::unique_ptr<Attempt>> attempts_;
  ConnectFailure last_failure_;
  Timer stagger_;
  Timer timeout_;
  Deferred step_;
};

}  // namespace encore::net
