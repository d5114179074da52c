#include "proxy/client/tunnel_origin.h"

#include <chrono>
#include <utility>

#include "base/text.h"
#include "proxy/exchange/decide.h"
#include "proxy/request/parent.h"
#include "proxy/settings/names.h"
#include "proxy/settings/refusal_keys.h"

namespace encore::server {

http::SyntheticReply reply_to(const TunnelRefusal& refusal, const RequestContext& request,
                              std::string_view http_date) {
  http::CacheStatus cache_status;
  cache_status.forwarded = http::Forwarded::kMethod;
  cache_status.said = request.says_cache_status();
  cache_status.detail = refusal.detail;
  return http::make_own_reply(
      refusal.status,
      "encore: " + refusal.detail + named_keys(config::Mode::kForward, refusal.detail), http_date,
      cache_status, request.runtime->error_pages.find(refusal.status));
}

TunnelRefusal TunnelOrigin::check() const {
  if (is_forwarding_loop(request_)) {
    return {.status = 508, .outcome = Outcome::kLoop, .detail = "loop"};
  }
  if (!request_.runtime->destinations.is_connect_port(request_.target.authority.port)) {
    return {.status = 403, .outcome = Outcome::kDenied, .detail = "connect-port"};
  }
  return {};
}

void TunnelOrigin::connect() {
  const http::Target& target = request_.target;
  asked_ = services_.loop.now();
  net::Resolver::Name name = {
      .host = target.authority.host, .port = target.authority.port, .client = request_.client};
  if (const config::ServerUrl* parent = parent_of(request_)) {
    name = {.host = parent->host, .port = parent->port};
  }
  query_ = services_.resolver.resolve(
      name, [this](std::expected<net::Resolved, net::ResolveFailure> result) {
        on_resolved(std::move(result));
      });
}

void TunnelOrigin::on_resolved(std::expected<net::Resolved, net::ResolveFailure> result) {
  const auto query = std::move(query_);
  if (!result) {
    const NameFault fault = name_fault(result.error().outcome);
    warn("cannot be resolved: " + std::string(to_string(result.error().outcome)));
    refuse(fault.status, fault.outcome, fault.detail);
    return;
  }
  net::Connector::Options options;
  options.addresses = std::move(result->addresses);
  const http::Target& target = request_.target;
  const std::string host = lower_ascii(target.authority.host);
  const auto verdict = check_destination(request_, host, target.authority.port, options.addresses);
  if (verdict != DestinationVerdict::kAllowed) {
    refuse(403, Outcome::kDenied, to_string(verdict));
    return;
  }
  if (parent_of(request_) != nullptr) {
    options.tunnel_to = authority_text(host, target.authority.port);
    options.tunnel_fields = tunnel_via(request_);
  }
  const Nanoseconds timeout = request_.runtime->config.timeouts.origin_connect;
  options.timeout = timeout.count() == 0 ? Nanoseconds(std::chrono::hours(1)) : timeout;
  connector_ = std::make_unique<net::Connector>(
      services_.loop, std::move(options),
      [this](std::expected<std::unique_ptr<net::Stream>, net::ConnectFailure> connected) {
        on_connected(std::move(connected));
      });
}

void TunnelOrigin::on_connected(
    std::expected<std::unique_ptr<net::Stream>, net::ConnectFailure> result) {
  const auto connector = std::move(connector_);
  if (result) {
    const auto on_end = std::move(on_end_);
    on_end(std::move(*result));
    return;
  }
  const bool timeout = result.error().outcome == net::ConnectOutcome::kTimeout;
  warn(result.error().message);
  if (result.error().proxy_status == 508) {
    // Each proxy of a circle passes on what the first one says of it, as it does for a GET.
    refuse(508, Outcome::kLoop, "loop");
    return;
  }
  refuse(timeout ? 504 : 502, timeout ? Outcome::kOriginTimeout : Outcome::kOriginUnreachable,
         "connect-" + std::string(to_string(result.error().outcome)));
}

void TunnelOrigin::check_timeouts(MonotonicTime now) {
  const Nanoseconds limit = request_.runtime->config.timeouts.dns;
  if (query_ == nullptr || limit.count() == 0 || now - asked_ < limit) return;
  query_.reset();
  warn("cannot be resolved: timeout");
  refuse(504, Outcome::kOriginTimeout, "dns-timeout");
}

void TunnelOrigin::warn(std::string_view why) {
  const http::Authority& authority = request_.target.authority;
  services_.warnings.tell(authority_text(lower_ascii(authority.host), authority.port), why,
                          services_.loop.now());
}

void TunnelOrigin::refuse(int status, Outcome outcome, std::string_view detail) {
  const auto on_end = std::move(on_end_);
  on_end(std::unexpected(
      TunnelRefusal{.status = status, .outcome = outcome, .detail = std::string(detail)}));
}

}  // namespace encore::server
