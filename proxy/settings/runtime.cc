#include "proxy/settings/runtime.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "config/derive.h"
#include "proxy/http/via.h"

namespace encore::server {
namespace {

std::uint32_t whole_seconds(Nanoseconds duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(seconds, 0, http::kDeltaMax));
}

std::vector<std::string> lower_case(std::vector<std::string> names) {
  for (std::string& name : names) std::ranges::transform(name, name.begin(), http::to_lower);
  return names;
}

http::SetCookiePolicy policy_of(config::SetCookie choice) {
  switch (choice) {
    case config::SetCookie::kStrip:
      return http::SetCookiePolicy::kStrip;
    case config::SetCookie::kRefuse:
      return http::SetCookiePolicy::kRefuse;
    case config::SetCookie::kStore:
      return http::SetCookiePolicy::kStore;
  }
  return http::SetCookiePolicy::kStrip;
}

// Clients whose failed logins are remembered, at 16 bytes each.
constexpr std::size_t kFailedClients = 65536;

// The treatments without a rule, which rules build on.
void set_treatments(Runtime& runtime, const SeriesBounds& bounds, const Runtime* before) {
  const config::Config& config = runtime.config;
  const config::Cache& cache = config.cache;
  RequestPolicy both;
  both.store.set_cookie = policy_of(cache.set_cookie);
  both.store.freshness = {.heuristic_fraction = cache.heuristic_fraction,
                          .heuristic_seconds_max = whole_seconds(cache.heuristic_max),
                          .heuristic_with_cookie = cache.heuristic_with_cookie};
  const std::uint32_t keep = whole_seconds(cache.keep_stale);
  both.stale.unreachable_seconds_max = cache.serve_stale_on_error ? keep : 0;
  both.stale.error_status_seconds_max = whole_seconds(cache.stale_if_error);
  both.max_object_bytes = config::effective_max_object(config);
  both.collapse = cache.collapse;
  both.swr_seconds_default = whole_seconds(cache.stale_while_revalidate);
  runtime.forward = runtime.reverse = both;
  using config::Switch;
  runtime.forward.vary.normalise_accept_encoding = cache.normalise_accept_encoding == Switch::kOn;
  runtime.reverse.vary.normalise_accept_encoding = cache.normalise_accept_encoding != Switch::kOff;
  runtime.reverse.vary.reverse = true;
  for (const config::Listen& listen : config.listen) {
    if (listen.mode != config::Mode::kForward) continue;
    const ForwardingFields told = forwarding_fields(listen.forwarded, listen.mode);
    runtime.forward.vary.tells_client |= told.x_forwarded || told.forwarded;
  }
  for (const config::Listen& listen : config.listen) {
    if (listen.tls_client_field.empty()) continue;
    runtime.forward.vary.own_names.push_back(lower_ascii(listen.tls_client_field));
  }
  runtime.reverse.vary.own_names = runtime.forward.vary.own_names;
  if (config.log.request_id >= config::RequestIds::kForward) {
    runtime.reverse.vary.own_names.emplace_back("x-request-id");
  }
  runtime.reverse.keys = {
      .sort_query = cache.query_sort, .drop_query = cache.query_drop, .scheme = kReverseScheme};
  runtime.reverse.reuse.ignore_client_reload = cache.ignore_client_reload;
  runtime.reverse.stale.ignore_client_reload = cache.ignore_client_reload;
  std::vector<config::Rule> rules = config.rule;
  for (config::Rule& rule : rules) {
    if (!rule.max_object_bytes) continue;
    rule.max_object_bytes = config::bounded_max_object(config, *rule.max_object_bytes);
  }
  runtime.rules = Rules(rules, runtime.forward, runtime.reverse, bounds,
                        before == nullptr ? nullptr : &before->rules);
}

void set_log(Runtime& runtime) {
  const config::Log& log = runtime.config.log;
  runtime.redaction = Redaction(log.redact_query);
  runtime.follows_requests = log.level == config::LogLevel::kDebug;
  const config::LogFormat& format = *log.format;
  const bool is_logged = !log.access.empty();
  using config::LogField;
  using config::RequestIds;
  runtime.logs_response_fields = is_logged && format.has(LogField::kResponseField);
  runtime.identifies_all =
      log.request_id == RequestIds::kRespond ||
      (log.request_id != RequestIds::kOff &&
       (runtime.follows_requests || (is_logged && format.has(LogField::kRequestId))));
  if (log.request_id == RequestIds::kRespond) {
    // There is one of them.
    runtime.head_options.strip_fields.emplace_back("x-request-id");
    runtime.forward_head_options.strip_fields.emplace_back("x-request-id");
  }
}

void set_published(Runtime& runtime) {
  const config::Filters& filters = runtime.config.filters;
  runtime.challenge_directory = runtime.config.acme.challenge_directory;
  runtime.squid_digest = filters.squid_digest;
  if (!filters.path.empty()) runtime.published_root = filters.path + "/";
  for (const config::CidrText& block : filters.allow_clients) {
    runtime.published_to.push_back(*block);
  }
}

Result<std::shared_ptr<const Interception>> interception_of(const config::Intercept& intercept,
                                                            const Interception* before) {
  auto made = Interception::create(intercept, before, wall_now());
  if (!made) return fail(std::string(made.error().key) + ": " + made.error().message);
  return std::move(*made);
}

// A look costs some nanoseconds a connection: ten in a second are not felt, and leave half of the
// 250 ms to a busy loop.
constexpr Nanoseconds kShortestSweep = std::chrono::milliseconds(100);
// The access log, which is written once a second, waits no longer than that.
constexpr Nanoseconds kLongestSweep = std::chrono::seconds(1);
// A twelfth late at most, and the rest of the tenth for a busy loop.
constexpr int kSweepsPerTimeout = 12;

}  // namespace

Nanoseconds sweep_interval(const config::Timeouts& timeouts, const config::Upstream& upstream) {
  Nanoseconds shortest = kSweepsPerTimeout * kLongestSweep;
  // drain has a timer of its own, and origin_connect, but for those who wait for a connection.
  for (const Nanoseconds limit :
       {timeouts.tls_handshake, timeouts.client_header, timeouts.client_idle, timeouts.client_body,
        timeouts.client_write, timeouts.collapse, timeouts.origin_connect, timeouts.origin_response,
        timeouts.origin_idle, timeouts.tunnel_idle, timeouts.upgrade_idle, timeouts.pool_idle,
        timeouts.pool_age, timeouts.dns, upstream.first_byte, upstream.total}) {
    if (limit.count() != 0) shortest = std::min(shortest, limit);
  }
  return std::clamp(shortest / kSweepsPerTimeout, kShortestSweep, kLongestSweep);
}

Runtime::Runtime(const config::Config& settings, Router routes, DestinationPolicy policy)
    : config(settings), router(std::move(routes)), destinations(std::move(policy)) {}

Result<std::shared_ptr<const Runtime>> Runtime::create(const config::Config& config,
                                                       const std::vector<net::Address>& own,
                                                       std::string_view instance,
                                                       const Runtime* before, std::size_t workers,
                                                       std::shared_ptr<net::TlsTickets> tickets,
                                                       const TlsListeners* tls_before) {
  const SeriesBounds bounds{.most = config.admin.metrics_series, .workers = workers};
  auto router = Router::create(config, before == nullptr ? nullptr : &before->router, bounds);
  if (!router) return std::unexpected(router.error());
  auto error_pages = ErrorPages::read(config.http.error_pages);
  if (!error_pages) return std::unexpected(error_pages.error());
  if (tls_before == nullptr && before != nullptr) tls_before = &before->tls;
  auto tls = TlsListeners::create(config, tls_before, std::move(tickets));
  if (!tls) return std::unexpected(tls.error());
  auto interception =
      interception_of(config.intercept, before == nullptr ? nullptr : before->interception.get());
  if (!interception) return std::unexpected(interception.error());
  std::shared_ptr<Runtime> runtime(new Runtime(
      config, std::move(*router), DestinationPolicy(config.forward, own, interface_addresses())));
  static std::atomic<std::uint64_t> numbers = 0;
  runtime->number = ++numbers;
  runtime->told_once = before == nullptr ? std::make_shared<LogOnceFilter>() : before->told_once;
  runtime->error_pages = std::move(*error_pages);
  runtime->tls = std::move(*tls);
  const config::Cache& cache = config.cache;
  runtime->head_limits = {.head_bytes_max = config.limits.head_bytes,
                          .target_bytes_max = config.limits.uri_bytes,
                          .fields_max = config.limits.fields};
  set_treatments(*runtime, bounds, before);
  std::vector<std::string> listeners;
  for (const config::Listen& listen : config.listen) listeners.push_back(listen.address.text());
  runtime->listeners = SeriesTable<ListenerCounts>(
      listeners, bounds, before == nullptr ? nullptr : &before->listeners);
  runtime->head_options.strip_tags = cache.strip_tags;
  if (cache.strip_tags) runtime->head_options.strip_fields = lower_case(cache.tag_fields);
  runtime->forward_head_options = runtime->head_options;
  runtime->interception = std::move(*interception);
  // A client that continued by another protocol would bypass interception.
  if (runtime->interception != nullptr) {
    runtime->forward_head_options.strip_fields.emplace_back("alt-svc");
  }
  runtime->reverse_targets = lower_case(cache.targets);
  // Two proxies with the same configured name in a row are no loop: the instance tells them apart.
  runtime->pseudonym = config.http.via + "-" + std::string(instance);
  const auto via = [&](http::Version version) {
    return "Via: " + http::via_member(version, runtime->pseudonym) + "\r\n";
  };
  runtime->via_field_11 = via(http::Version::kHttp11);
  runtime->via_field_10 = via(http::Version::kHttp10);
  runtime->via_field_20 = via(http::Version::kHttp2);
  runtime->max_memory_object_bytes = config::max_object_in_memory(config);
  if (!config.compression.codings.empty()) runtime->compression.emplace(config.compression);
  set_log(*runtime);
  runtime->sweep_interval = server::sweep_interval(config.timeouts, config.upstream);
  if (config.intercept.is_on()) {
    const Nanoseconds wait = config.intercept.hello_wait / kSweepsPerTimeout;
    runtime->sweep_interval = std::min(runtime->sweep_interval, std::max(wait, kShortestSweep));
  }
  set_published(*runtime);
  std::shared_ptr<const RateLimits> rates;
  if (!config.limit.empty()) rates = std::make_shared<RateLimits>(config.limit);
  for (const config::Listen& listen : config.listen) {
    auto policy = ListenerPolicy::make(listen, rates);
    if (!policy) return std::unexpected(policy.error());
    const bool logs_in = *policy != nullptr && (*policy)->credentials != nullptr;
    const std::uint32_t failures = config.limits.failed_logins_per_client;
    if (logs_in && failures != 0 && runtime->failed_logins == nullptr) {
      runtime->failed_logins = std::make_shared<TokenBuckets>(TokenBuckets::Options{
          .rate = failures / 60.0, .burst = failures, .entries = kFailedClients});
    }
    runtime->policies.push_back(std::move(*policy));
    runtime->has_secure_realms |=
        !listen.trusted_proxies.empty() || listen.proxy_protocol || !listen.tls.empty();
  }
  return runtime;
}

bool Runtime::may_have_published(const net::Address& client) const {
  const auto bytes = client.mapped_bytes();
  return std::ranges::any_of(published_to,
                             [&](const config::Cidr& block) { return block.contains(bytes); });
}

}  // namespace encore::server
