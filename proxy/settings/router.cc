#include "proxy/settings/router.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "filter/hash.h"
#include "proxy/settings/glob.h"
#include "proxy/settings/path_readings.h"

namespace encore::server {
namespace {

// Exact names before wildcards, longer wildcards before shorter ones.
std::size_t host_rank(std::string_view pattern) {
  if (pattern == "*") return 0;
  return pattern.starts_with("*.") ? pattern.size() : pattern.size() + 1024;
}

std::string make_realm(char kind, const config::Origin& origin) {
  const auto hash =
      filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, origin.host + " " + origin.path);
  return fmt::format("{}{:06x}:", kind, hash.lo & 0xffffffU);
}

net::TlsContext::ClientOptions forward_options(const config::Upstream& upstream) {
  return {.ca_file = upstream.tls_ca_file,
          .verify_peer = upstream.tls_verify,
          .certificate_file = upstream.tls_certificate,
          .key_file = upstream.tls_key};
}

net::TlsContext::ClientOptions origin_options(const config::Origin& origin,
                                              const config::Upstream& upstream) {
  net::TlsContext::ClientOptions options = forward_options(upstream);
  options.http2 = origin.http2;
  options.verify_peer &= origin.tls_verify;
  if (!origin.tls_ca_file.empty()) options.ca_file = origin.tls_ca_file;
  if (!origin.tls_certificate.empty()) {
    options.certificate_file = origin.tls_certificate;
    options.key_file = origin.tls_key;
  }
  return options;
}

config::Origin nowhere(std::string_view host, std::string_view path) {
  config::Origin origin;
  origin.host = host;
  origin.path = path;
  origin.servers.clear();
  return origin;
}

}  // namespace

std::string server_series(std::string_view origin, std::string_view url) {
  return fmt::format("{} {}", origin, url);
}

Route::Route(const config::Origin& origin, const config::Upstream& upstream, std::size_t workers)
    : host_(origin.host),
      path_(origin.path),
      realm_(make_realm('r', origin)),
      secure_realm_(make_realm('s', origin)),
      preserves_host_(origin.host_header == config::HostHeader::kPreserve &&
                      origin.host_header_value.empty()),
      trusts_hints_(origin.admission_hint == config::AdmissionHint::kTrusted),
      group_({.balance = origin.balance,
              .hot_share = origin.hot_share,
              .slow_start = origin.slow_start,
              .ejection = {.after = upstream.eject_after,
                           .rest = upstream.set_aside,
                           .rest_max = upstream.set_aside_max},
              .workers = workers}) {
  for (const config::ServerText& url : origin.servers) {
    OriginServer server;
    server.host = url->host;
    server.port = url->port;
    server.socket_file = url->socket;
    const bool v6 = url->host.find(':') != std::string::npos;
    server.url = fmt::format("{}://{}:{}", url->tls ? "https" : "http",
                             v6 ? "[" + url->host + "]" : url->host, url->port);
    if (!url->socket.empty()) server.url = "unix:" + url->socket;
    server.authority = v6 ? "[" + url->host + "]" : url->host;
    if (url->port != (url->tls ? 443 : 80)) server.authority += ":" + std::to_string(url->port);
    if (!origin.host_header_value.empty()) server.authority = origin.host_header_value;
    server.tls_name = origin.tls_server_name.empty() ? url->host : origin.tls_server_name;
    server.pool_key = fmt::format("{}://{}:{}", url->tls ? "https" : "http", url->host, url->port);
    if (!url->socket.empty()) server.pool_key = "unix:" + url->socket;
    if (url->tls) {
      server.pool_key += fmt::format("|{}|{}|{}|{}", origin.tls_verify, origin.tls_ca_file,
                                     server.tls_name, origin.tls_certificate);
    }
    server.http2 = origin.http2;
    // Other connections than those of HTTP/1.
    if (origin.http2) server.pool_key += "|h2";
    server.weight = url->weight;
    server.backup = url->backup;
    group_.add(std::move(server));
  }
}

Route::Route(std::string_view host, std::string_view path) : Route(nowhere(host, path), {}) {
  is_published_ = true;
}

void Router::name_series(const config::Config& config, const Router* before,
                         const SeriesBounds& bounds) {
  std::vector<std::string> origins;
  std::vector<std::string> servers;
  for (const config::Origin& origin : config.origin) {
    origins.push_back(origin.host + origin.path);
    const Route* const route = find(origin.host, origin.path);
    for (const OriginServer& server : route->group().servers()) {
      servers.push_back(server_series(origins.back(), server.url));
    }
  }
  const Series* const kept = before == nullptr ? nullptr : &before->series_;
  series_.origins = SeriesNames(origins, bounds.most, kept == nullptr ? nullptr : &kept->origins);
  series_.servers = SeriesNames(servers, bounds.most, kept == nullptr ? nullptr : &kept->servers);
  series_.others =
      kept == nullptr ? std::make_shared<ServerCounters>(bounds.workers) : kept->others;
  for (const auto& route : routes_) {
    route->group_.count_others(
        [&](const OriginServer& server) {
          return series_.servers.has(server_series(route->host() + route->path(), server.url));
        },
        series_.others);
  }
}

Result<Router> Router::create(const config::Config& config, const Router* before,
                              const SeriesBounds& bounds) {
  Router router;
  auto forward = net::TlsContext::client(forward_options(config.upstream));
  if (!forward) return std::unexpected(forward.error());
  router.https_hosts_ = config.forward.https;
  router.forward_tls_ = std::make_unique<net::TlsContext>(std::move(*forward));

  std::map<std::tuple<bool, std::string, std::string, bool>, const net::TlsContext*> known;
  std::set<std::string_view> hosts;
  for (const config::Origin& origin : config.origin) hosts.insert(origin.host);
  std::vector<std::string> paths;
  if (!config.filters.path.empty()) paths.push_back(config.filters.path + "/");
  if (config.filters.squid_digest) paths.emplace_back("/squid-internal-periodic/");
  for (const std::string_view host : hosts) {
    for (const std::string& path : paths) {
      router.routes_.push_back(std::make_unique<Route>(host, path));
    }
  }
  for (const config::Origin& origin : config.origin) {
    auto route = std::make_unique<Route>(origin, config.upstream, bounds.workers);
    const net::TlsContext::ClientOptions options = origin_options(origin, config.upstream);
    for (std::size_t i = 0; i < route->group_.servers().size(); ++i) {
      if (!origin.servers[i]->tls) continue;
      const net::TlsContext*& context =
          known[{options.verify_peer, options.ca_file, options.certificate_file, options.http2}];
      if (context == nullptr) {
        auto made = net::TlsContext::client(options);
        if (!made) return std::unexpected(made.error());
        router.contexts_.push_back(std::make_unique<net::TlsContext>(std::move(*made)));
        context = router.contexts_.back().get();
      }
      route->group_.servers()[i].tls = context;
    }
    const Route* kept = before == nullptr ? nullptr : before->find(origin.host, origin.path);
    route->group_.begin(
        kept == nullptr ? nullptr : &kept->group_,
        origin.health_path.empty() ? ServerGroup::Checks::kForgotten : ServerGroup::Checks::kKept);
    router.routes_.push_back(std::move(route));
  }
  std::ranges::stable_sort(router.routes_, [](const auto& a, const auto& b) {
    const std::size_t rank_a = host_rank(a->host());
    const std::size_t rank_b = host_rank(b->host());
    return rank_a != rank_b ? rank_a > rank_b : a->path().size() > b->path().size();
  });
  if (!router.routes_.empty()) {
    const Route& first = *router.routes_.front();
    if (first.host() == "*" && first.path() == "/") router.only_ = &first;
  }
  router.has_paths_ = std::ranges::any_of(router.routes_, [](const auto& route) {
    return route->path() != "/" && !route->is_published();
  });
  router.name_series(config, before, bounds);
  return router;
}

bool Router::asks_by_https(std::string_view host) const {
  return std::ranges::any_of(
      https_hosts_, [host](std::string_view pattern) { return host_matches(pattern, host); });
}

const Route* Router::find(std::string_view host, std::string_view path) const {
  for (const auto& route : routes_) {
    if (!route->is_published() && route->host() == host && route->path() == path) {
      return route.get();
    }
  }
  return nullptr;
}

const Route* Router::match(std::string_view host, std::string_view path) const {
  for (const auto& route : routes_) {
    if (host_matches(route->host(), host) && path.starts_with(route->path())) return route.get();
  }
  return nullptr;
}

bool Router::is_route_of_all_readings(const Route* route, std::string_view host,
                                      std::string_view path, std::string_view as_sent) const {
  if (!has_paths()) return true;
  const PathReadings readings = other_readings(path, as_sent);
  return readings.is_complete && std::ranges::all_of(readings.others, [&](const auto& reading) {
           return match(host, reading) == route;
         });
}

const Route* Router::match_uri(std::string_view uri) const {
  const std::size_t authority = uri.find("://") + 3;
  const std::size_t path = std::min(uri.find('/', authority), uri.size());
  return match_uri(uri, {.authority = authority, .path = path, .bytes = uri.size()});
}

const Route* Router::match_uri(std::string_view uri, const http::KeyText& parts) const {
  if (only_ != nullptr) return only_;
  std::string_view path = uri.substr(parts.path);
  path = path.substr(0, path.find('?'));
  return match(http::host_of(uri, parts), path.empty() ? "/" : path);
}

}  // namespace encore::server
