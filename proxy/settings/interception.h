// Interception: all that follows from [intercept]: the rules, the authority and its mint, who has
// rejected it. Immutable but for what it remembers; thread-safe. A reload makes a new one, which
// takes over what was known and, of the same authority, what was signed.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "config/config.h"
#include "proxy/ca/leaf_issuer.h"
#include "proxy/net/address.h"
#include "proxy/net/tls_server.h"
#include "proxy/observe/certificate_report.h"
#include "proxy/settings/client_hosts.h"
#include "proxy/settings/intercept_rules.h"
#include "proxy/settings/rejections.h"

namespace encore::server {

// The path at which a forward listener itself serves its authority's certificate.
inline constexpr std::string_view kAuthorityPath = "/ca.crt";

// A connection inside of which a client has asked for something, for as long as it lasts.
class InterceptUse {
 public:
  InterceptUse(std::shared_ptr<ClientHosts> used, const net::Address& client, std::string_view host,
               MonotonicTime now, Nanoseconds memory);
  ~InterceptUse();
  InterceptUse(const InterceptUse&) = delete;
  InterceptUse& operator=(const InterceptUse&) = delete;

  // It has asked for something again.
  void go_on(MonotonicTime now) const {
    if (latest_ != nullptr) latest_->store(now, std::memory_order_relaxed);
  }

 private:
  const std::shared_ptr<ClientHosts> used_;
  const net::Address client_;
  const std::string host_;
  const std::shared_ptr<ClientHosts::Latest> latest_;
};

// Chooses if clients that offer HTTP/2 and HTTP/1.1 get HTTP/2. A client that offers HTTP/2 alone
// passes unread: a program that speaks nothing else, such as gRPC, has a server that speaks it.
enum class InterceptHttp2 : std::uint8_t { kOff, kOn };

// Why [intercept] cannot be used.
struct InterceptFault {
  std::string_view key;  // at which it is: "intercept.ca_key"
  std::string message;
};

class Interception {
 public:
  using Made = std::expected<std::shared_ptr<const Interception>, InterceptFault>;
  // Null: nothing is decrypted. `before` is what was in force, or null. Errors: files that cannot
  // be used, an authority that is not good at `now`, hosts that it may not sign for.
  static Made create(const config::Intercept& intercept, const Interception* before, WallTime now);

  // Decides if a CONNECT is decrypted, as far as that is known before it is answered.
  Splice at_connect(const net::Address& client, std::string_view host, std::uint16_t port,
                    bool is_own, MonotonicTime now) const;
  // For a client that wants to speak TLS to this host (lower case), and HTTP/2 inside if it offers
  // that and may. Null: there is no certificate for it.
  net::TlsSessionPointer session(std::string_view host, InterceptHttp2 http2, WallTime now) const;
  // A client has not taken it: it may go through unread for a time now (Rejections).
  void note_reject(const net::Address& client, std::string_view host, MonotonicTime now) const;
  // A client may not have taken it: it left as one that rejects it does, and as a browser does that
  // ends, for it has taken it before. True: it has left so before `started`, and not long ago,
  // which nobody does who takes it.
  bool note_doubt(const net::Address& client, std::string_view host, MonotonicTime started,
                  MonotonicTime now) const;
  // A client has taken it, and asked for something: what it had opened in advance, as browsers do,
  // and leaves unused is no rejection.
  std::shared_ptr<const InterceptUse> use(const net::Address& client, std::string_view host,
                                          MonotonicTime now) const;
  std::optional<MonotonicTime> last_use(const net::Address& client, std::string_view host,
                                        MonotonicTime now) const;
  // True if it has a connection at present inside of which it has asked for something.
  bool is_in_use(const net::Address& client, std::string_view host) const;

  Nanoseconds hello_wait() const { return intercept_.hello_wait; }
  const ca::Authority& authority() const { return mint_->authority(); }
  const ca::LeafIssuer& mint() const { return *mint_; }
  Rejections& rejected() const { return *rejected_; }

 private:
  // By what they speak: the second has HTTP/2 as well.
  struct Servers {
    std::shared_ptr<const net::TlsServer> http1;
    std::shared_ptr<const net::TlsServer> http2;
  };
  Interception(const config::Intercept& intercept, std::shared_ptr<ca::LeafIssuer> mint,
               Servers servers, std::vector<std::string> chain,
               std::shared_ptr<Rejections> rejected, std::shared_ptr<ClientHosts> used,
               std::shared_ptr<ClientHosts> doubted);

  const config::Intercept intercept_;
  const InterceptRules rules_;
  const std::shared_ptr<ca::LeafIssuer> mint_;
  const Servers servers_;
  const std::vector<std::string> chain_;  // shown behind each leaf
  const std::shared_ptr<Rejections> rejected_;
  const std::shared_ptr<ClientHosts> used_;     // clients that have sent a request inside
  const std::shared_ptr<ClientHosts> doubted_;  // clients that may have rejected it
};

// Reports the authority's expiry, after which all goes through unread.
CertificateReport authority_report(const config::Intercept& intercept,
                                   const Interception& interception, WallTime now);

}  // namespace encore::server
