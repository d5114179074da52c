// Which [[origin]] answers a request of a reverse listener: the most specific host, then the
// longest path. Immutable after construction but for what its groups know of their servers;
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "proxy/http/uri.h"
#include "proxy/net/tls.h"
#include "proxy/observe/series.h"
#include "proxy/settings/server_group.h"

namespace encore::server {

// Length of the text in front of a cache key that keeps what one listener stored from another's.
inline constexpr std::size_t kRealmBytes = 8;
inline constexpr std::string_view kForwardRealm = "forward:";
static_assert(kForwardRealm.size() == kRealmBytes);

// Reverse listeners speak http, whatever stands in front of them: for what they answer, http and
// https are one.
inline constexpr http::Scheme kReverseScheme = http::Scheme::kHttp;

class Route {
 public:
  // `workers` count the results of its servers.
  explicit Route(const config::Origin& origin, const config::Upstream& upstream = {},
                 std::size_t workers = 1);
  // A route to published resources, instead of an origin: below this path, which ends with "/".
  Route(std::string_view host, std::string_view path);

  const std::string& host() const { return host_; }
  const std::string& path() const { return path_; }
  // kRealmBytes, the same for the same host and path in every run. Requests by TLS from clients of
  // a trusted proxy have a realm of their own: origins that learn this respond differently. Why
  // client addresses have none: docs/decisions/0211.
  const std::string& realm() const { return realm_; }
  const std::string& secure_realm() const { return secure_realm_; }
  bool preserves_host() const { return preserves_host_; }
  // Its servers' Cache-Status is believed (origin.admission_hint).
  bool trusts_hints() const { return trusts_hints_; }
  const ServerGroup& group() const { return group_; }
  // It is answered here: there is no server to be asked.
  bool is_published() const { return is_published_; }

 private:
  friend class Router;
  std::string host_;
  std::string path_;
  std::string realm_;
  std::string secure_realm_;
  bool preserves_host_;
  bool is_published_ = false;
  bool trusts_hints_ = false;
  ServerGroup group_;
};

// Returns the name of a server that is unique among all.
std::string server_series(std::string_view origin, std::string_view url);

class Router {
 public:
  // Loads the certificates that origins name. The state of servers that stay is copied from
  // `before`; null: there is none. Errors: a certificate file that cannot be used.
  static Result<Router> create(const config::Config& config, const Router* before = nullptr,
                               const SeriesBounds& bounds = {});

  // The route for a host (lower case, without port) and a normalised path; null: none. A path
  // matches what begins with it.
  const Route* match(std::string_view host, std::string_view path) const;
  // The same for a normalised URI, "http://host[:port]/path?query", as cache keys have it.
  const Route* match_uri(std::string_view uri) const;
  // And where its parts are known.
  const Route* match_uri(std::string_view uri, const http::KeyText& parts) const;
  // TLS to servers that a forward client names.
  const net::TlsContext* forward_tls() const { return forward_tls_.get(); }
  // True if a host (lower case) that a forward client asks for by http is asked by https.
  bool asks_by_https(std::string_view host) const;

  // True if an origin has only a part of its host's paths. Published resources do not belong to an
  // origin.
  bool has_paths() const { return has_paths_; }
  // True if each reading of the path (path_readings.h) leads to `route`, so that no server takes it
  // for that of another origin. `as_sent` is the path before it was normalised.
  bool is_route_of_all_readings(const Route* route, std::string_view host, std::string_view path,
                                std::string_view as_sent) const;

  // That of the [[origin]] with this host and path; null: there is none.
  const Route* find(std::string_view host, std::string_view path) const;

  // Which origins, by host and path, and which of their servers have series of their own, and what
  // is counted of the servers that have none.
  struct Series {
    SeriesNames origins;
    SeriesNames servers;  // by server_series()
    std::shared_ptr<ServerCounters> others;
  };
  const Series& series() const { return series_; }

 private:
  void name_series(const config::Config& config, const Router* before, const SeriesBounds& bounds);

  std::vector<std::unique_ptr<Route>> routes_;  // most specific host first, then longest path
  const Route* only_ = nullptr;                 // set if all requests have the same
  bool has_paths_ = false;
  std::vector<std::unique_ptr<net::TlsContext>> contexts_;
  std::unique_ptr<net::TlsContext> forward_tls_;
  std::vector<std::string> https_hosts_;  // patterns
  Series series_;
};

}  // namespace encore::server
