#include "proxy/origin/origin_http2_choice.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace encore::server {
namespace {

// A server sends more than a client may: what is a flood of one client is what a hundred calls of a
// service say (docs/decisions/0476).
constexpr std::uint32_t kAllowanceFactor = 10;

h2::Options options_of(const Runtime& runtime) {
  const config::Timeouts& timeouts = runtime.config.timeouts;
  h2::Options options;
  options.streams_max = runtime.config.upstream.http2_streams;
  options.limit_heads(runtime.head_limits.head_bytes_max, runtime.head_limits.fields_max);
  options.has_streams_apart = true;
  // One whose server reads none of its content ends alone.
  options.stall_time = h2::time_limit(timeouts.origin_idle);
  options.stalled_streams_max = UINT32_MAX;
  options.head_time = h2::time_limit(timeouts.origin_response);
  options.allowance_factor = kAllowanceFactor;
  return options;
}

// How long connections stay in use whose name is not told.
constexpr Nanoseconds kUnnamedUse = std::chrono::seconds(30);

}  // namespace

// A connection that was made under other settings is nothing for a request, nor the other way
// round.
OriginHttp2Choice::FoundConnection OriginHttp2Choice::find(const OriginServer& server) const {
  if (!is_of_present_settings()) return {};
  FoundConnection found;
  const MonotonicTime now = services_.loop.now();
  const auto is_named = [&](const OriginHttp2Connection& connection) {
    const bool is_sure = now < connection.named_until();
    found.is_unsure |= !is_sure;
    return is_sure;
  };
  OriginHttp2Pool& pool = services_.pool.http2();
  found.connection = pool.find(server.pool_key, std::cref(is_named));
  found.is_awaited = waits_ && pool.has_attempt(server.pool_key);
  return found;
}

// As connections of HTTP/1: those of an address that the name has no more carry nothing new.
OriginHttp2Connection* OriginHttp2Choice::find_confirmed(
    const OriginServer& server,
    const std::expected<net::Resolved, net::ResolveFailure>& result) const {
  const auto is_named = [&](const OriginHttp2Connection& connection) {
    return !result ||
           std::ranges::find(result->addresses, connection.peer()) != result->addresses.end();
  };
  OriginHttp2Connection* const found =
      services_.pool.http2().find(server.pool_key, std::cref(is_named));
  if (found == nullptr) return nullptr;
  found->set_named_until(services_.loop.now() + (result ? result->time_to_live : kUnnamedUse));
  return found;
}

// By ALPN over TLS; a plain connection is known to (RFC 9113 3.3).
bool OriginHttp2Choice::is_chosen_by(const OriginServer* server, const net::Stream& stream) const {
  if (server == nullptr || !server->http2) return false;
  const bool is_chosen = !stream.is_tls() || stream.tls_facts().alpn == "h2";
  services_.pool.http2().note_http1(server->pool_key, !is_chosen);
  return is_chosen;
}

OriginHttp2Connection& OriginHttp2Choice::add(const OriginServer& server,
                                              OriginHttp2Connection::Parts parts) const {
  return services_.pool.http2().add(server.pool_key, std::move(parts),
                                    options_of(*request_.runtime), services_.stats);
}

}  // namespace encore::server
