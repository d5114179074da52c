// Runtime: all that follows from one configuration, immutable. A reload makes a new one and hands
// it to the workers; a request keeps the one it began with. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "config/network.h"
#include "proxy/http/parser.h"
#include "proxy/http/stored_head.h"
#include "proxy/observe/access_log.h"
#include "proxy/observe/log_once_filter.h"
#include "proxy/observe/redaction.h"
#include "proxy/observe/request_counts.h"
#include "proxy/observe/series.h"
#include "proxy/settings/compression.h"
#include "proxy/settings/destination.h"
#include "proxy/settings/error_pages.h"
#include "proxy/settings/interception.h"
#include "proxy/settings/listener_policy.h"
#include "proxy/settings/request_policy.h"
#include "proxy/settings/router.h"
#include "proxy/settings/rules.h"
#include "proxy/settings/tls_listeners.h"
#include "proxy/settings/token_buckets.h"

namespace encore::server {

// Returns how often a worker checks everything that waits, so that each limit on waiting takes
// effect at most a tenth of it, or 250 ms, late: no timer a request is needed for that.
Nanoseconds sweep_interval(const config::Timeouts& timeouts, const config::Upstream& upstream = {});

// The path at which a Squid requests a sibling's digest.
inline constexpr std::string_view kSquidDigestPath = "/squid-internal-periodic/store_digest";

struct Runtime {
  // `own` are the bound listeners; see DestinationPolicy. `before`: what is known of servers, and
  // what was counted of what stays, is taken over from it; null: there is nothing. `workers` will
  // work by it. `tickets`: keys of another process that go on; null: there is none. Errors:
  // certificates that cannot be loaded, an authority that cannot be used, error pages that cannot
  // be read. `tls_before`: the present listeners, which may have newer certificates than `before`;
  // null: those of `before`.
  static Result<std::shared_ptr<const Runtime>> create(
      const config::Config& config, const std::vector<net::Address>& own, std::string_view instance,
      const Runtime* before = nullptr, std::size_t workers = 1,
      std::shared_ptr<net::TlsTickets> tickets = {}, const TlsListeners* tls_before = nullptr);

  // Unique for each runtime.
  std::uint64_t number = 0;
  config::Config config;
  Router router;
  DestinationPolicy destinations;
  http::Limits head_limits;
  RequestPolicy forward;  // without a rule; a forward proxy always honours its clients' reloads
  RequestPolicy reverse;
  Rules rules;
  http::HeadOptions head_options;            // for responses of reverse listeners
  http::HeadOptions forward_head_options;    // and for forward ones
  std::vector<std::string> reverse_targets;  // lower-case names of targeted fields
  std::string pseudonym;                     // ours in Via
  std::string via_field_11;                  // "Via: 1.1 name\r\n", for messages received as 1.1
  std::string via_field_10;
  std::string via_field_20;
  std::uint64_t max_memory_object_bytes = 0;  // larger ones lie on disk alone
  ErrorPages error_pages;
  std::optional<Compression> compression;  // nothing: it is off
  Redaction redaction;
  bool identifies_all = false;        // hits and refusals, too, have ids
  bool logs_response_fields = false;  // the access log has some of each response
  bool follows_requests = false;      // step by step, on standard error
  Nanoseconds sweep_interval{};
  // The directory of challenges, here because each request checks it; empty: none is answered.
  std::string challenge_directory;
  std::string published_root;              // "/filters/"; empty: not on proxy listeners
  std::vector<config::Cidr> published_to;  // clients that may fetch it there

  bool squid_digest = false;  // kSquidDigestPath is answered

  std::shared_ptr<const Interception> interception;  // null: nothing is decrypted

  // True if a forward listener itself serves this path.
  bool is_published(std::string_view path) const {
    return (interception != nullptr && path == kAuthorityPath) ||
           (!published_root.empty() && path.starts_with(published_root)) ||
           (squid_digest && path == kSquidDigestPath);
  }
  bool may_have_published(const net::Address& client) const;

  // The policy of the listener with that number; null: it has none.
  const ListenerPolicy* policy(std::size_t listener) const {
    return listener < policies.size() ? policies[listener].get() : nullptr;
  }
  std::vector<std::unique_ptr<const ListenerPolicy>> policies;
  // True if clients of the listener of that place may begin with HTTP/2.
  bool takes_http2(std::size_t listener) const {
    return listener < config.listen.size() && config.listen[listener].http2;
  }
  SeriesTable<ListenerCounts> listeners;        // counters of each, by its address in the config
  std::shared_ptr<TokenBuckets> failed_logins;  // per client; null: not counted
  std::shared_ptr<LogOnceFilter> told_once;     // warnings of requests, over reloads; never null
  TlsListeners tls;
  // Some listener speaks TLS, or has a word for it that its client does.
  bool has_secure_realms = false;

 private:
  Runtime(const config::Config& config, Router router, DestinationPolicy destinations);
};

}  // namespace encore::server
