// Which [[origin]] answers a request of a reverse listener: the most specific host, then the
// longest path. Immutable after construction but for the turn of servers; thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "proxy/net/tls.h"

namespace encore::server {

// One server of an origin, as connections to it are made and pooled.
struct OriginServer {
  std::string host;  // name or address, without brackets
  std::uint16_t port = 80;
  std::string authority;                 // "host[:port]" as a Host field has it
  std::string pool_key;                  // unique for host, port, TLS and its settings
  const net::TlsContext* tls = nullptr;  // borrowed of the router; null: plain
  std::string tls_name;                  // what the certificate must be for
};

// Length of the text in front of a cache key that keeps what one listener stored from another's.
inline constexpr std::size_t kRealmBytes = 8;
inline constexpr std::string_view kForwardRealm = "forward:";
static_assert(kForwardRealm.size() == kRealmBytes);

class Route {
 public:
  explicit Route(const config::Origin& origin);

  const std::string& host() const { return host_; }
  const std::string& path() const { return path_; }
  // kRealmBytes, the same for the same host and path in every run.
  const std::string& realm() const { return realm_; }
  bool preserves_host() const { return preserves_host_; }
  const std::vector<OriginServer>& servers() const { return servers_; }
  // The server whose turn it is.
  const OriginServer& next_server() const {
    const std::size_t turn = turn_.fetch_add(1, std::memory_order_relaxed);
    return servers_[turn % servers_.size()];
  }

 private:
  friend class Router;
  std::string host_;
  std::string path_;
  std::string realm_;
  bool preserves_host_;
  std::vector<OriginServer> servers_;
  mutable std::atomic<std::size_t> turn_ = 0;
};

class Router {
 public:
  // Loads the certificates that origins name. Errors: a certificate file that cannot be used.
  static Result<Router> create(const config::Config& config);

  // The route for a host (lower case, without port) and a normalised path; null: none. A path
  // matches what begins with it.
  const Route* match(std::string_view host, std::string_view path) const;
  // The same for a normalised URI, "http://host[:port]/path?query", as cache keys have it.
  const Route* match_uri(std::string_view uri) const;
  // TLS to servers that a forward client names.
  const net::TlsContext* forward_tls() const { return forward_tls_.get(); }

 private:
  std::vector<std::unique_ptr<Route>> routes_;  // most specific host first, then longest path
  std::vector<std::unique_ptr<net::TlsContext>> contexts_;
  std::unique_ptr<net::TlsContext> forward_tls_;
};

}  // namespace encore::server
