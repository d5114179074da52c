// The part of a link that is about HTTP/2: a stream of a connection that other requests use as
// well, in place of a connection.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "proxy/origin/origin_link.h"

namespace encore::server {
namespace {

// A server sends more than a client may: what is a flood of one client is what a hundred calls of a
// service say (docs/decisions/0476).
constexpr std::uint32_t kAllowanceFactor = 10;
constexpr std::size_t kFieldsFactor = 4;
constexpr Nanoseconds kNoLimit = std::chrono::hours(24 * 365);

Nanoseconds or_none(Nanoseconds limit) { return limit.count() == 0 ? kNoLimit : limit; }

h2::Options options_of(const Runtime& runtime) {
  const config::Timeouts& timeouts = runtime.config.timeouts;
  h2::Options options;
  options.streams_max = runtime.config.upstream.http2_streams;
  options.head_bytes_max = runtime.head_limits.head_bytes_max;
  options.fields_max = std::max(options.fields_max, kFieldsFactor * runtime.head_limits.fields_max);
  options.has_streams_apart = true;
  // One whose server reads none of its content ends alone.
  options.stall_time = or_none(timeouts.origin_idle);
  options.stalled_streams_max = UINT32_MAX;
  options.head_time = or_none(timeouts.origin_response);
  options.allowance_factor = kAllowanceFactor;
  return options;
}

}  // namespace

bool OriginLink::speaks_http2() const {
  return server_ != nullptr && server_->http2 && !services_.pool.http2().is_http1(pool_key());
}

// A connection that was made under other settings is nothing for a request, nor the other way
// round.
OriginLink::Stream OriginLink::take_stream() {
  if (request_.runtime.get() != &services_.worker.present_runtime()) return Stream::kNone;
  const MonotonicTime now = services_.loop.now();
  bool is_any_unsure = false;
  const auto is_named = [&](const OriginHttp2Connection& connection) {
    is_any_unsure |= now >= connection.named_until();
    return now < connection.named_until();
  };
  if (take_stream_of(std::cref(is_named))) return Stream::kTaken;
  if (is_any_unsure && need_ == Need::kAny) return Stream::kUnsure;
  const bool is_awaited = awaits_others_ && services_.pool.http2().has_attempt(pool_key());
  return is_awaited ? Stream::kAwaited : Stream::kNone;
}

bool OriginLink::take_stream_of(const std::function<bool(const OriginHttp2Connection&)>& is_named) {
  OriginHttp2Connection* const found = services_.pool.http2().find(pool_key(), is_named);
  if (found == nullptr) return false;
  services_.stats.origin_reuses.add();
  connect_time_ = Nanoseconds(-1);
  slot_.reset();
  open_stream(*found);
  return true;
}

void OriginLink::open_stream(OriginHttp2Connection& connection) {
  ++opened_;
  attempt_.end();
  auto stream = connection.open();
  const bool is_reused = stream->is_reused();
  state_ = Open{.stream = nullptr,
                .reused = is_reused,
                .http2 = std::move(stream),
                .count = {},
                .made = connection.made(),
                .named_until = connection.named_until()};
}

// The same for connections of HTTP/2 as for others: those of an address that the name has no more
// carry nothing new.
bool OriginLink::take_confirmed_stream(
    const std::expected<net::Resolved, net::ResolveFailure>& result) {
  constexpr Nanoseconds kUnconfirmedUse = std::chrono::seconds(30);
  const MonotonicTime until =
      services_.loop.now() + (result ? result->time_to_live : kUnconfirmedUse);
  const auto is_named = [&](const OriginHttp2Connection& connection) {
    return !result ||
           std::ranges::find(result->addresses, connection.peer()) != result->addresses.end();
  };
  OriginHttp2Connection* const found = services_.pool.http2().find(pool_key(), std::cref(is_named));
  if (found == nullptr) return false;
  found->set_named_until(until);
  return take_stream_of([found](const auto& connection) { return &connection == found; });
}

// By ALPN over TLS; a plain connection is known to (RFC 9113 3.3).
bool OriginLink::chooses_http2(const net::Stream& stream) {
  if (server_ == nullptr || !server_->http2) return false;
  const bool chosen = !stream.is_tls() || stream.tls_facts().alpn == "h2";
  services_.pool.http2().note_http1(pool_key(), !chosen);
  return chosen;
}

void OriginLink::open_http2(std::unique_ptr<net::Stream> stream, ConnectionCount count) {
  OriginHttp2Connection& connection =
      services_.pool.http2().add(pool_key(),
                                 {.stream = std::move(stream),
                                  .slot = std::move(slot_),
                                  .count = std::move(count),
                                  .made = services_.loop.now(),
                                  .named_until = named_until_},
                                 options_of(*request_.runtime), services_.stats);
  open_stream(connection);
  // It is for this request alone.
  const bool is_shared = request_.runtime.get() == &services_.worker.present_runtime() &&
                         !services_.worker.is_draining() &&
                         request_.runtime->config.upstream.pool_per_server != 0;
  if (!is_shared) connection.retire();
}

}  // namespace encore::server
