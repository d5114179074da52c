// Counters of the running proxy. One WorkerStats a worker, written by that worker alone with
// relaxed stores, read by anybody; sums are made on demand.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "base/time.h"
#include "proxy/observe/counter.h"
#include "proxy/observe/error_counts.h"
#include "proxy/observe/http2_counts.h"
#include "proxy/observe/outcome.h"
#include "proxy/observe/recent.h"

namespace encore::server {

// Log-linear buckets: four to a doubling, from 1 us to about 67 s and one for what is beyond.
inline constexpr std::size_t kLatencyBuckets = 4 * 26 + 1;

// The bucket of a latency. Bucket b holds latencies up to latency_bucket_bound(b).
inline std::size_t latency_bucket(Nanoseconds latency) noexcept {
  // In units of 250 ns a doubling's four steps are the two bits below the leading one.
  const auto count = latency.count() <= 0 ? 0 : static_cast<std::uint64_t>(latency.count() - 1);
  const std::uint64_t scaled = count / 250;
  if (scaled < 4) return 0;
  const auto exponent = static_cast<std::size_t>(std::bit_width(scaled)) - 3;  // 0 for 4..7
  const auto step = static_cast<std::size_t>(scaled >> exponent) & 3U;
  const std::size_t bucket = exponent * 4 + step + 1;
  return bucket < kLatencyBuckets ? bucket : kLatencyBuckets - 1;
}
// The upper bound of a bucket in seconds; infinity for the last.
double latency_bucket_bound(std::size_t bucket) noexcept;

// The distribution of a latency. One writer.
class LatencyHistogram {
 public:
  void record(Nanoseconds latency) noexcept {
    buckets_[latency_bucket(latency)].add();
    sum_nanoseconds_.add(static_cast<std::uint64_t>(latency.count() < 0 ? 0 : latency.count()));
  }
  std::uint64_t bucket(std::size_t index) const { return buckets_.at(index).get(); }
  std::uint64_t sum_nanoseconds() const { return sum_nanoseconds_.get(); }

 private:
  std::array<Counter, kLatencyBuckets> buckets_;
  Counter sum_nanoseconds_;
};

// Sizes of responses: bucket b holds up to 4^b bytes, the last is open.
inline constexpr std::size_t kResponseSizeBuckets = 22;
constexpr std::size_t response_size_bucket(std::uint64_t bytes) noexcept {
  const auto doublings = static_cast<std::size_t>(std::bit_width(bytes - (bytes != 0 ? 1 : 0)));
  return std::min((doublings + 1) / 2, kResponseSizeBuckets - 1);
}

// The distribution of the bytes of bodies as clients had them. One writer.
struct ResponseSizes {
  void record(std::uint64_t bytes) noexcept {
    buckets[response_size_bucket(bytes)].add();
    sum.add(bytes);
  }
  std::array<Counter, kResponseSizeBuckets> buckets;
  Counter sum;
};

//  member                     name in /metrics (after encore_)        help
#define ENCORE_COUNTERS(X)                                                                         \
  X(connections_accepted, "client_connections_total", "Client connections accepted.")              \
  X(connections_refused, "client_connections_refused_total",                                       \
    "Client connections closed immediately by a limit.")                                           \
  X(connections_given_up, "client_connections_given_up_total",                                     \
    "Idle client connections closed in favour of new ones.")                                       \
  X(connections_revoked, "client_connections_revoked_total",                                       \
    "Client connections ended because a reload no longer allows client, login or destination.")    \
  X(tls_handshakes, "tls_handshakes_total", "Completed TLS handshakes of clients.")                \
  X(tls_resumed, "tls_resumed_total", "TLS handshakes that resumed a session.")                    \
  X(tls_failures, "tls_handshake_failures_total",                                                  \
    "Failed or timed out TLS handshakes of clients.")                                              \
  X(tls_refused, "tls_handshakes_refused_total",                                                   \
    "Client connections closed by the limit of concurrent TLS handshakes.")                        \
  X(tls_plain_http, "tls_plain_http_total", "Plain HTTP requests on TLS listeners.")               \
  X(http2_connections, "http2_connections_total", "HTTP/2 connections of clients.")                \
  X(http2_streams, "http2_streams_total", "HTTP/2 streams opened by clients.")                     \
  X(http2_streams_reset, "http2_streams_reset_total",                                              \
    "HTTP/2 streams reset before the end of their response.")                                      \
  X(proxy_headers_bad, "proxy_headers_refused_total",                                              \
    "Client connections closed for a missing or untrusted PROXY header.")                          \
  X(access_denied, "access_denied_total", "Requests refused by a listener's access lists.")        \
  X(purges_refused, "purges_refused_total",                                                        \
    "Purges refused because purge_clients lacks the client.")                                      \
  X(rate_limited, "rate_limited_total", "Requests refused by rate limits.")                        \
  X(logins_right, "logins_accepted_total", "Requests with correct credentials.")                   \
  X(logins_failed, "logins_failed_total", "Requests refused because of wrong credentials.")        \
  X(logins_limited, "logins_limited_total",                                                        \
    "Credentials refused unchecked after too many failures or in a full queue.")                   \
  X(transfers_refused, "transfers_refused_total",                                                  \
    "Requests refused by the per-client concurrency limit.")                                       \
  X(heads_given_up, "client_heads_given_up_total",                                                 \
    "Requests refused by the limit of unfinished heads.")                                          \
  X(bytes_from_clients, "client_received_bytes_total", "Bytes received from clients.")             \
  X(bytes_to_clients, "client_sent_bytes_total", "Bytes sent to clients.")                         \
  X(bytes_from_origins, "origin_received_bytes_total", "Bytes received from origins.")             \
  X(bytes_to_origins, "origin_sent_bytes_total", "Bytes sent to origins.")                         \
  X(responses_5xx, "responses_5xx_total", "Responses with a status of 500 or more.")               \
  X(kept_out, "kept_out_total", "Responses not stored by admission.")                              \
  X(kept_out_bytes, "kept_out_body_bytes_total",                                                   \
    "Body bytes of responses not stored by admission.")                                            \
  X(compressed_zstd, "compressed_zstd_responses_total", "Responses compressed with zstd.")         \
  X(compressed_zstd_read, "compressed_zstd_read_bytes_total", "Bytes read by zstd compression.")   \
  X(compressed_zstd_made, "compressed_zstd_made_bytes_total",                                      \
    "Bytes produced by zstd compression.")                                                         \
  X(compressed_br, "compressed_br_responses_total", "Responses compressed with brotli.")           \
  X(compressed_br_read, "compressed_br_read_bytes_total", "Bytes read by brotli compression.")     \
  X(compressed_br_made, "compressed_br_made_bytes_total", "Bytes produced by brotli compression.") \
  X(compressed_gzip, "compressed_gzip_responses_total", "Responses compressed with gzip.")         \
  X(compressed_gzip_read, "compressed_gzip_read_bytes_total", "Bytes read by gzip compression.")   \
  X(compressed_gzip_made, "compressed_gzip_made_bytes_total",                                      \
    "Bytes produced by gzip compression.")                                                         \
  X(compression_refused, "compression_refused_total",                                              \
    "Responses not compressed for lack of compression memory.")                                    \
  X(origin_requests, "origin_requests_total", "Requests sent to origins.")                         \
  X(origin_connects, "origin_connects_total", "Connections opened to origins.")                    \
  X(origin_reuses, "origin_reuses_total", "Requests sent on a kept-alive origin connection.")      \
  X(origin_http2_connections, "origin_http2_connections_total",                                    \
    "HTTP/2 connections opened to origins.")                                                       \
  X(origin_http2_streams, "origin_http2_streams_total", "HTTP/2 requests sent to origins.")        \
  X(origin_retries, "origin_retries_total", "Requests repeated on a new connection.")              \
  X(origin_failovers, "origin_failovers_total",                                                    \
    "Requests passed to another server after a failure.")                                          \
  X(origin_waits, "origin_waits_total",                                                            \
    "Requests queued for a connection of their server or for their client's part of it.")          \
  X(origin_busy, "origin_busy_total",                                                              \
    "Requests failed because all connections of their server were in use.")                        \
  X(origin_share_refusals, "origin_share_refusals_total",                                          \
    "Requests failed because their client used its part of the server's connections.")             \
  X(origin_hot_requests, "origin_hot_requests_total",                                              \
    "Requests sent to any server because their URL is hot (`hot_share`).")                         \
  X(origins_set_aside, "origins_set_aside_total", "Servers ejected after failures.")               \
  X(health_checks, "health_checks_total", "Health checks of servers.")                             \
  X(health_failures, "health_check_failures_total", "Failed health checks.")                       \
  X(redirects_followed, "redirects_followed_total", "Redirections of origins followed.")           \
  X(rechecks, "rechecks_total", "Authorization rechecks of cached responses.")                     \
  X(digest_mismatches, "digest_mismatches_total",                                                  \
    "Bodies that differ from the digest in their path.")                                           \
  X(revalidations, "revalidations_total", "Conditional requests sent for a stored response.")      \
  X(background_fetches, "background_fetches_total", "Fetches without a waiting client.")           \
  X(overtaken, "overtaken_total",                                                                  \
    "Responses not stored because a newer one or a purge came first.")                             \
  X(stored, "stored_total", "Responses stored.")                                                   \
  X(stored_bytes, "stored_bytes_total", "Memory charge of responses stored.")                      \
  X(store_aborts, "store_aborts_total", "Transfers aborted while being stored.")                   \
  X(large_heads, "large_heads_total",                                                              \
    "Responses not stored, or dropped, because their head is too large.")                          \
  X(memory_waits, "memory_waits_total", "Transfers that waited for memory.")                       \
  X(memory_failures, "memory_failures_total", "Transfers failed for lack of memory.")              \
  X(memory_evictions, "memory_evictions_total", "Stored responses evicted for transfers.")         \
  X(share_waits, "share_waits_total",                                                              \
    "Pauses of origins whose client exceeded its part of the transfer memory.")                    \
  X(slow_readers_cut, "slow_readers_cut_total",                                                    \
    "Responses cut because their client read too slowly.")                                         \
  X(slow_readers_continued, "slow_readers_continued_total",                                        \
    "Readers left behind by a shared response that continued alone.")                              \
  X(tunnels, "tunnels_total", "CONNECT tunnels opened.")                                           \
  X(intercepts, "intercepts_total", "CONNECTs decrypted.")                                         \
  X(intercepts_spliced, "intercepts_spliced_total",                                                \
    "CONNECTs to intercepted hosts passed unread.")                                                \
  X(intercepts_rejected, "intercepts_rejected_total",                                              \
    "CONNECTs whose client refused the certificate.")                                              \
  X(intercepts_failed, "intercepts_failed_total",                                                  \
    "CONNECTs whose client handshake failed or timed out without a refusal.")                      \
  X(upgrades, "upgrades_total", "Connections switched to another protocol.")                       \
  X(dns_questions, "dns_questions_total", "Queries to name servers, without repetitions.")         \
  X(dns_cache_hits, "dns_cache_hits_total", "Names resolved from the cache.")                      \
  X(dns_joined, "dns_joined_total", "Lookups that joined one in progress.")                        \
  X(dns_limited, "dns_limited_total", "Lookups refused by a limit.")                               \
  X(dns_failures, "dns_failures_total", "Lookups without a response of any name server.")          \
  X(log_dropped, "log_dropped_total",                                                              \
    "Log records dropped because the log was not writable in time.")

// Counters derived from the sizes of responses.
#define ENCORE_BODY_COUNTERS(X)                                                               \
  X(body_bytes_hit, "hit_body_bytes_total", "Body bytes of responses served from the cache.") \
  X(body_bytes_all, "body_bytes_total", "Body bytes of all responses sent to clients.")

//  member              name in /metrics (after encore_)   help
#define ENCORE_GAUGES(X)                                                                  \
  X(connections_open, "client_connections", "Open client connections.")                   \
  X(http2_open, "http2_connections", "Open HTTP/2 connections of clients.")               \
  X(http2_streams_open, "http2_streams", "Open HTTP/2 streams of clients.")               \
  X(tls_handshaking, "tls_handshakes", "TLS handshakes of clients in progress.")          \
  X(origin_connections, "origin_connections", "Open connections to origins.")             \
  X(origin_http2_open, "origin_http2_connections", "Open HTTP/2 connections to origins.") \
  X(origin_http2_streams_open, "origin_http2_streams", "Open HTTP/2 streams to origins.") \
  X(transfers_open, "transfers", "Transfers from origins in progress.")                   \
  X(tunnels_open, "tunnels", "Open CONNECT tunnels.")                                     \
  X(upgrades_open, "upgrades", "Open connections of other protocols.")                    \
  X(dns_lookups, "dns_lookups", "Lookups in progress.")

// Sizes in powers of two: bucket b holds less than 2^b bytes; the last is open.
inline constexpr std::size_t kSizeBuckets = 44;
constexpr std::size_t size_bucket(std::uint64_t bytes) noexcept {
  const auto bucket = static_cast<std::size_t>(std::bit_width(bytes));
  return bucket < kSizeBuckets ? bucket : kSizeBuckets - 1;
}

// Counters of one worker. Confined to its worker for writing.
struct alignas(64) WorkerStats {
  std::size_t number = 0;                                    // number of the worker, from 0
  std::array<Counter, kOutcomeCount> requests;               // by Outcome
  std::array<LatencyHistogram, kOutcomeClassCount> latency;  // by OutcomeClass
  std::array<ResponseSizes, kOutcomeClassCount> sizes;       // likewise
  std::array<Counter, kSizeBuckets> stored_sizes;            // body bytes of what was stored
  RecentRequests recent;
  ErrorCounts errors;
  Http2Counts http2;         // with clients
  Http2Counts origin_http2;  // with origins
#define ENCORE_MEMBER(member, name, help) Counter member;
  ENCORE_COUNTERS(ENCORE_MEMBER)
  ENCORE_GAUGES(ENCORE_MEMBER)
#undef ENCORE_MEMBER

  // Body bytes of all responses of a class.
  std::uint64_t body_bytes(OutcomeClass group) const {
    return sizes.at(static_cast<std::size_t>(group)).sum.get();
  }
  std::uint64_t body_bytes() const {
    std::uint64_t all = 0;
    for (const ResponseSizes& each : sizes) all += each.sum.get();
    return all;
  }
};

}  // namespace encore::server
