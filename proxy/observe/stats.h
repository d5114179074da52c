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
    "Client connections closed at once because a limit was reached.")                              \
  X(connections_given_up, "client_connections_given_up_total",                                     \
    "Idle client connections closed to make room for new ones.")                                   \
  X(connections_revoked, "client_connections_revoked_total",                                       \
    "Client connections whose client, login or destination a reload no longer allows.")            \
  X(tls_handshakes, "tls_handshakes_total", "TLS handshakes of clients that were done.")           \
  X(tls_resumed, "tls_resumed_total", "TLS handshakes that resumed a session.")                    \
  X(tls_failures, "tls_handshake_failures_total",                                                  \
    "TLS handshakes of clients that failed, or did not end in time.")                              \
  X(tls_refused, "tls_handshakes_refused_total",                                                   \
    "Client connections closed because too many handshakes were under way.")                       \
  X(tls_plain_http, "tls_plain_http_total", "Requests of plain HTTP where TLS is spoken.")         \
  X(http2_connections, "http2_connections_total", "Client connections that spoke HTTP/2.")         \
  X(http2_streams, "http2_streams_total", "Streams opened by clients of HTTP/2.")                  \
  X(http2_streams_reset, "http2_streams_reset_total",                                              \
    "Streams of HTTP/2 that ended before their response had, whoever ended them.")                 \
  X(proxy_headers_bad, "proxy_headers_refused_total",                                              \
    "Client connections closed for a missing or untrusted PROXY header.")                          \
  X(access_denied, "access_denied_total",                                                          \
    "Requests refused by a listener's own lists of who may ask for what.")                         \
  X(purges_refused, "purges_refused_total",                                                        \
    "Purges refused because their client may not purge at that listener.")                         \
  X(rate_limited, "rate_limited_total", "Requests refused because too many came.")                 \
  X(logins_right, "logins_accepted_total", "Requests with correct credentials.")                   \
  X(logins_failed, "logins_failed_total", "Requests refused because of wrong credentials.")        \
  X(logins_limited, "logins_limited_total",                                                        \
    "Credentials not checked because too many were wrong, or waited.")                             \
  X(transfers_refused, "transfers_refused_total",                                                  \
    "Requests refused by the per-client concurrency limit.")                                       \
  X(heads_given_up, "client_heads_given_up_total",                                                 \
    "Requests refused because too many heads did not end.")                                        \
  X(bytes_from_clients, "client_received_bytes_total", "Bytes received from clients.")             \
  X(bytes_to_clients, "client_sent_bytes_total", "Bytes sent to clients.")                         \
  X(bytes_from_origins, "origin_received_bytes_total", "Bytes received from origins.")             \
  X(bytes_to_origins, "origin_sent_bytes_total", "Bytes sent to origins.")                         \
  X(responses_5xx, "responses_5xx_total", "Responses with a status of 500 or more.")               \
  X(kept_out, "kept_out_total", "Responses that admission kept out of the cache.")                 \
  X(kept_out_bytes, "kept_out_body_bytes_total", "Their body bytes, as clients had them.")         \
  X(compressed_zstd, "compressed_zstd_responses_total",                                            \
    "Responses sent in zstd that their origin had not compressed.")                                \
  X(compressed_zstd_read, "compressed_zstd_read_bytes_total", "Bytes compressed by zstd here.")    \
  X(compressed_zstd_made, "compressed_zstd_made_bytes_total",                                      \
    "Bytes produced by zstd compression.")                                                         \
  X(compressed_br, "compressed_br_responses_total",                                                \
    "Responses sent in brotli that their origin had not compressed.")                              \
  X(compressed_br_read, "compressed_br_read_bytes_total", "Bytes compressed by brotli here.")      \
  X(compressed_br_made, "compressed_br_made_bytes_total", "Bytes produced by brotli compression.") \
  X(compressed_gzip, "compressed_gzip_responses_total",                                            \
    "Responses sent in gzip that their origin had not compressed.")                                \
  X(compressed_gzip_read, "compressed_gzip_read_bytes_total", "Bytes compressed by gzip here.")    \
  X(compressed_gzip_made, "compressed_gzip_made_bytes_total",                                      \
    "Bytes produced by gzip compression.")                                                         \
  X(compression_refused, "compression_refused_total",                                              \
    "Responses sent as they are because compressing others took all memory for it.")               \
  X(origin_requests, "origin_requests_total", "Requests sent to origins.")                         \
  X(origin_connects, "origin_connects_total", "Connections opened to origins.")                    \
  X(origin_reuses, "origin_reuses_total", "Requests sent on a kept-alive origin connection.")      \
  X(origin_http2_connections, "origin_http2_connections_total",                                    \
    "Connections to origins that spoke HTTP/2.")                                                   \
  X(origin_http2_streams, "origin_http2_streams_total",                                            \
    "Requests sent to origins as streams of HTTP/2.")                                              \
  X(origin_retries, "origin_retries_total", "Requests sent again on a fresh connection.")          \
  X(origin_failovers, "origin_failovers_total",                                                    \
    "Requests that went on to another server because one failed.")                                 \
  X(origin_waits, "origin_waits_total",                                                            \
    "Times a request waited because its server had as many connections as it may, or its "         \
    "client its share of them.")                                                                   \
  X(origin_busy, "origin_busy_total",                                                              \
    "Requests that failed because their server had as many connections as it may.")                \
  X(origin_share_refusals, "origin_share_refusals_total",                                          \
    "Requests that failed because their client had its share of the server's connections.")        \
  X(origins_set_aside, "origins_set_aside_total", "Servers ejected after failures.")               \
  X(health_checks, "health_checks_total", "Health checks of servers.")                             \
  X(health_failures, "health_check_failures_total", "Health checks that failed.")                  \
  X(redirects_followed, "redirects_followed_total", "Redirections of origins followed here.")      \
  X(rechecks, "rechecks_total", "Authorization rechecks of cached responses.")                     \
  X(digest_mismatches, "digest_mismatches_total",                                                  \
    "Bodies that were not what the digest in their path says.")                                    \
  X(revalidations, "revalidations_total", "Conditional requests sent for a stored response.")      \
  X(background_fetches, "background_fetches_total", "Fetches that no client waited for.")          \
  X(overtaken, "overtaken_total",                                                                  \
    "Responses not stored because a newer one or a purge came before them.")                       \
  X(stored, "stored_total", "Responses committed to the cache.")                                   \
  X(stored_bytes, "stored_bytes_total", "Charge of the responses committed to the cache.")         \
  X(store_aborts, "store_aborts_total", "Transfers that were to be stored and ended early.")       \
  X(large_heads, "large_heads_total",                                                              \
    "Responses not stored, or dropped, because the store takes no head of that size.")             \
  X(memory_waits, "memory_waits_total", "Transfers that had to wait for memory.")                  \
  X(memory_failures, "memory_failures_total",                                                      \
    "Transfers that failed because no memory could be had.")                                       \
  X(memory_evictions, "memory_evictions_total",                                                    \
    "Stored responses evicted to make room for transfers.")                                        \
  X(share_waits, "share_waits_total",                                                              \
    "Times an origin was held back because its client held more than its share of memory.")        \
  X(slow_readers_cut, "slow_readers_cut_total",                                                    \
    "Responses cut because their client took them too slowly.")                                    \
  X(slow_readers_continued, "slow_readers_continued_total",                                        \
    "Readers of a shared response that fell behind and went on by themselves.")                    \
  X(tunnels, "tunnels_total", "CONNECT tunnels opened.")                                           \
  X(intercepts, "intercepts_total", "CONNECTs that were decrypted.")                               \
  X(intercepts_spliced, "intercepts_spliced_total",                                                \
    "CONNECTs to hosts that are decrypted that went through unread.")                              \
  X(intercepts_rejected, "intercepts_rejected_total",                                              \
    "CONNECTs whose client did not take our certificate.")                                         \
  X(intercepts_failed, "intercepts_failed_total",                                                  \
    "CONNECTs whose handshake with us broke off or was not done in time, without a refusal.")      \
  X(upgrades, "upgrades_total", "Connections that went over to another protocol.")                 \
  X(dns_questions, "dns_questions_total", "Questions to name servers, repetitions left out.")      \
  X(dns_cache_hits, "dns_cache_hits_total", "Names answered from what was asked before.")          \
  X(dns_joined, "dns_joined_total", "Names that were being asked for already.")                    \
  X(dns_limited, "dns_limited_total",                                                              \
    "Names not asked for because too many lookups were under way.")                                \
  X(dns_failures, "dns_failures_total", "Lookups that no name server gave an answer to.")          \
  X(log_dropped, "log_dropped_total",                                                              \
    "Log records dropped because the log could not be written in time.")

// Counters derived from the sizes of responses.
#define ENCORE_BODY_COUNTERS(X)                                                               \
  X(body_bytes_hit, "hit_body_bytes_total", "Body bytes of responses served from the cache.") \
  X(body_bytes_all, "body_bytes_total", "Body bytes of all responses sent to clients.")

//  member              name in /metrics (after encore_)   help
#define ENCORE_GAUGES(X)                                                                     \
  X(connections_open, "client_connections", "Client connections open.")                      \
  X(http2_open, "http2_connections", "Client connections of HTTP/2 open.")                   \
  X(http2_streams_open, "http2_streams", "Streams of HTTP/2 open.")                          \
  X(tls_handshaking, "tls_handshakes", "TLS handshakes of clients under way.")               \
  X(origin_connections, "origin_connections", "Origin connections open.")                    \
  X(origin_http2_open, "origin_http2_connections", "Origin connections of HTTP/2 open.")     \
  X(origin_http2_streams_open, "origin_http2_streams", "Streams of HTTP/2 to origins open.") \
  X(transfers_open, "transfers", "Transfers from origins under way.")                        \
  X(tunnels_open, "tunnels", "CONNECT tunnels open.")                                        \
  X(upgrades_open, "upgrades", "Connections in another protocol open.")                      \
  X(dns_lookups, "dns_lookups", "Names being looked up.")

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
