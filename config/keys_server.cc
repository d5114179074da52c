// Keys of [state], [workers], [admin], [log], [timeouts] and [limits].
#include <array>

#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::array<std::string_view, 5> kLevels = {"debug", "info", "warn", "error", "off"};
constexpr std::array<std::string_view, 4> kRequestIds = {"off", "log", "forward", "respond"};

constexpr std::string_view kShareAccepted = "\"1%\" .. \"100%\", or a number, 0 .. 16777216";

constexpr std::array kStateKeys = {
    bound<&State::directory>({.name = "directory",
                              .doc = "Where the filter survives a restart. Empty: nowhere.",
                              .apply = Apply::kRestart,
                              .accepted = "a directory or \"\"",
                              .item_check = check_file_name}),
    bound<&State::save_interval>({.name = "save_interval",
                                  .kind = Kind::kDuration,
                                  .doc = "How often it is saved while running. 0: on exit only.",
                                  .range = {.min = kSecond, .max = kDay},
                                  .zero_is_off = true}),
};

constexpr std::array kWorkersKeys = {
    bound<&Workers::count>({.name = "count",
                            .kind = Kind::kInteger,
                            .doc = "Threads that serve. 0: one a core.",
                            .range = {.min = 1, .max = 256},
                            .zero_is_off = true,
                            .apply = Apply::kRestart}),
};

constexpr std::array kAdminKeys = {
    bound<&Admin::address>({.name = "address",
                            .doc = "Where operators connect: the live page at `/`, `/healthz`, "
                                   "`/readyz`, `/metrics`, `/api/stats`, `/purge` and more, "
                                   "`/filters` where something is published, and `/filter` to who "
                                   "has the token. On a loopback address, or a Unix socket, what "
                                   "changes something is for everybody who may come; elsewhere it "
                                   "takes the token. Empty: nowhere.",
                            .apply = Apply::kRestart,
                            .accepted = "\"127.0.0.1:3129\", \"[::1]:3129\", \"*:3129\", "
                                        "\"unix:/run/encore-admin.sock\" or \"\"",
                            .item_check = check_parsed<OptionalEndpointText>}),
    bound<&Admin::socket_mode>(
        {.name = "socket_mode",
         .doc = "The permissions of the file, where `address` is a Unix socket: who may write to "
                "it may connect.",
         .apply = Apply::kRestart,
         .accepted = "an octal number, as \"0660\"",
         .item_check = check_parsed<SocketModeText>}),
    bound<&Admin::allow_clients>(
        {.name = "allow_clients",
         .kind = Kind::kTextList,
         .doc = "Who may use the listener; others get 403, but from `/healthz` and `/readyz`, "
                "which answer whoever can connect. Who connects to a Unix socket may.",
         .range = {.min = 0, .max = 4096},
         .accepted = "addresses and blocks, as \"10.0.0.0/8\"",
         .item_check = check_parsed<CidrText>}),
    bound<&Admin::allow_hosts>(
        {.name = "allow_hosts",
         .kind = Kind::kTextList,
         .doc = "Names in `Host` that are answered beside `localhost`, loopback addresses and the "
                "listener's own address: a page in a browser cannot reach the listener under a "
                "name of its own.",
         .range = {.min = 0, .max = 64},
         .accepted = "host names",
         .item_check = check_host_name}),
    bound<&Admin::token_file>(
        {.name = "token_file",
         .doc = "A file with the token for `GET /filter` and `POST /filter/adopt`, and, where "
                "the listener is not on loopback, for `POST /purge`: one line of 16 "
                "to 256 letters, digits and `-._~+/=`, which only this user, root and a group may "
                "read. A relative name is one in the directory in which encore was started. It is "
                "read again at a reload. Empty: none of these is served.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Admin::show_queries>(
        {.name = "show_queries",
         .kind = Kind::kBool,
         .doc = "Whether the URLs that the live page and `/api/outcome` show have their query; "
                "else `?...` stands for it, for queries often have secrets."}),
    bound<&Admin::metrics_series>(
        {.name = "metrics_series",
         .kind = Kind::kInteger,
         .doc = "How many listeners, how many origins, how many of their servers and how many "
                "rules have series of their own in `/metrics`. What is beyond that is counted "
                "together as `other`, and `encore_metrics_series_clipped` says how many there are. "
                "Who has series keeps them over a reload.",
         .range = {.min = 1, .max = 10'000}}),
};

constexpr std::array kLogKeys = {
    bound<&Log::access>({.name = "access",
                         .doc = "The access log: a file, `-` for standard output, empty for none. "
                                "SIGUSR1 reopens the file, after it was renamed.",
                         .apply = Apply::kRestart,
                         .accepted = "a file name, \"-\" or \"\"",
                         .item_check = check_file_name}),
    bound<&Log::format>({.name = "format",
                         .doc = "Of the access log: `json`, an object a line; `squid`, Squid's "
                                "native format; `combined`, that of web servers; or a line of "
                                "one's own, in which Apache's directives stand for fields: `%h "
                                "%l %u %t \"%r\" %>s %O %{outcome}x`. docs/LOGS.md has "
                                "all of them.",
                         .accepted = "json, squid, combined, or a line with any of %h %a %l %u %t "
                                     "%r %s %>s %b %B %O %I %D %T %{ms}T %m %U %q %H %v %p %X "
                                     "%{Name}i %{Name}o %{field}x %%",
                         .item_check = check_parsed<LogFormatText>}),
    bound<&Log::request_id>(
        {.name = "request_id",
         .kind = Kind::kChoice,
         .doc = "What becomes of a request's id: `X-Request-Id` as one of `trusted_proxies` has "
                "sent it (up to 128 letters, digits and `-._~+/=:`), else 128 random bits. "
                "`log`: the access log has it, where its format does. `forward`: the servers of "
                "`[[origin]]`s are told as well, in `X-Request-Id`, and get no client's own. "
                "`respond`: clients are told as well.",
         .choices = kRequestIds}),
    bound<&Log::redact_query>(
        {.name = "redact_query",
         .kind = Kind::kTextList,
         .doc = "Parameters of queries, in any case, whose values are secrets: `***` stands for "
                "them in logs, on the live page and in what is said of requests.",
         .range = {.min = 0, .max = 256},
         .accepted = "names of parameters",
         .item_check = check_lower_query_name}),
    bound<&Log::decisions>({.name = "decisions",
                            .doc = "The journal of every decision of the cache, which `encore-sim "
                                   "verify` replays. Empty: none.",
                            .apply = Apply::kRestart,
                            .accepted = "a file name or \"\"",
                            .item_check = check_file_name}),
    bound<&Log::level>({.name = "level",
                        .kind = Kind::kChoice,
                        .doc = "Of the diagnostics on standard error.",
                        .choices = kLevels}),
};

// A time limit: 0 is none.
template <auto kMember>
constexpr Key timeout(std::string_view name, std::string_view doc) {
  return bound<kMember>({.name = name,
                         .kind = Kind::kDuration,
                         .doc = doc,
                         .range = {.min = 1e6, .max = 30 * kDay},
                         .zero_is_off = true});
}

constexpr std::array kTimeoutsKeys = {
    timeout<&Timeouts::tls_handshake>(
        "tls_handshake", "From a client's connection to the end of its TLS handshake."),
    timeout<&Timeouts::client_header>("client_header",
                                      "From the first byte of a request to the end of its head."),
    timeout<&Timeouts::client_idle>("client_idle", "A client's connection between requests."),
    timeout<&Timeouts::client_body>("client_body", "Between two reads of a request's body."),
    timeout<&Timeouts::client_write>("client_write",
                                     "A client that takes nothing of its response."),
    timeout<&Timeouts::collapse>(
        "collapse",
        "A request that waits for what another one was asked for, and no "
        "answer comes, or, where each must validate it, not all of it: then "
        "it asks too (`cache.collapse`). Also a request that waits for a range of a body that is "
        "still in progress: then its origin is asked for it, or it gets the whole."),
    timeout<&Timeouts::origin_connect>(
        "origin_connect",
        "Connecting to a server, TLS included; also how long a request waits in line for a "
        "connection (`upstream.connections_per_server`)."),
    timeout<&Timeouts::origin_response>("origin_response",
                                        "From the sent request to the head of the response."),
    timeout<&Timeouts::origin_idle>("origin_idle", "Between two reads of a response's body."),
    timeout<&Timeouts::tunnel_idle>("tunnel_idle", "A tunnel in which nothing moves."),
    timeout<&Timeouts::upgrade_idle>("upgrade_idle",
                                     "A connection that has gone over to another protocol, as "
                                     "WebSocket, and in which nothing moves."),
    timeout<&Timeouts::pool_idle>("pool_idle", "An idle connection to a server is kept."),
    timeout<&Timeouts::pool_age>(
        "pool_age", "The age at which a kept connection to a server carries no new request."),
    timeout<&Timeouts::dns>("dns", "Looking up a name."),
    timeout<&Timeouts::drain>(
        "drain",
        "After SIGTERM: how long requests under way may take to end; after a "
        "reload, those that it no longer allows (their client, login or "
        "destination). Connections on which nothing moves for half of it, such as idle "
        "tunnels and long polls, end after that half."),
};

constexpr std::array kLimitsKeys = {
    bound<&Limits::head_bytes>({.name = "head",
                                .kind = Kind::kBytes,
                                .doc = "The whole head of a request (else 431) or of a response "
                                       "(else 502).",
                                .range = {.min = 1.0 * kKiB, .max = 16.0 * kMiB}}),
    bound<&Limits::uri_bytes>({.name = "uri",
                               .kind = Kind::kBytes,
                               .doc = "The request target; else 414.",
                               .range = {.min = 64, .max = 16.0 * kMiB}}),
    bound<&Limits::fields>({.name = "fields",
                            .kind = Kind::kInteger,
                            .doc = "Fields of a head.",
                            .range = {.min = 8, .max = 65536}}),
    bound<&Limits::trailers_bytes>({.name = "trailers",
                                    .kind = Kind::kBytes,
                                    .doc = "Fields behind a chunked body.",
                                    .range = {.min = 0, .max = 16.0 * kMiB}}),
    bound<&Limits::chunk_extension_bytes>({.name = "chunk_extension",
                                           .kind = Kind::kBytes,
                                           .doc = "Extensions of one chunk.",
                                           .range = {.min = 0, .max = 1.0 * kMiB}}),
    bound<&Limits::request_body_bytes>({.name = "request_body",
                                        .kind = Kind::kBytes,
                                        .doc = "The body of a request; else 413. 0: no limit.",
                                        .range = {.min = 0, .max = 64.0 * kTiB}}),
    bound<&Limits::client_body_rate_min>(
        {.name = "client_body_rate_min",
         .kind = Kind::kBytes,
         .doc = "Bytes a second that a request's body comes with at least, over "
                "`timeouts.client_body` (a minute where that is 0), while the origin takes them "
                "and has not answered yet; else 408. 0: no limit.",
         .range = {.min = 0, .max = 1.0 * kGiB}}),
    bound<&Limits::body_behind_response_bytes>(
        {.name = "body_behind_response",
         .kind = Kind::kBytes,
         .doc = "How much of a request's body is passed on after its origin has sent a complete "
                "response without `Connection: close`; then both connections are closed. 0: "
                "nothing.",
         .range = {.min = 0, .max = 64.0 * kTiB}}),
    bound<&Limits::connections>({.name = "connections",
                                 .kind = Kind::kInteger,
                                 .doc = "Client connections over all workers. Beyond it the "
                                        "one that has been idle for longest gives way to a new "
                                        "one; where none is idle the new one is closed.",
                                 .range = {.min = 1, .max = 16777216}}),
    bound<&Limits::connections_per_client>(
        {.name = "connections_per_client",
         .doc = "Connections of one client address, or IPv6 network of 64 bits: a number, or a "
                "percentage of the client connections that `connections` and the descriptors of "
                "the process allow, rounded down, but at least one. `trusted_proxies` are not "
                "counted. `\"100%\"` or 0: no limit.",
         .number_will_do = true,
         .accepted = kShareAccepted,
         .item_check = check_parsed<ClientShareText>}),
    bound<&Limits::transfers_per_client>(
        {.name = "transfers_per_client",
         .doc = "Requests that one client address, or IPv6 network of 64 bits, may have under way "
                "that are answered by more than a hit from memory; more get 429. A number, or a "
                "percentage of the client connections that are allowed, as for "
                "`connections_per_client`. `\"100%\"` or 0: no limit.",
         .number_will_do = true,
         .accepted = kShareAccepted,
         .item_check = check_parsed<ClientShareText>}),
    bound<&Limits::failed_logins_per_client>(
        {.name = "failed_logins_per_client",
         .kind = Kind::kInteger,
         .doc = "Wrong credentials a minute of one client address, or IPv6 network of 64 bits, "
                "where a listener asks for some; further passwords, and tokens that are wrong, "
                "get 429. 0: no limit.",
         .range = {.min = 0, .max = 1e6}}),
    bound<&Limits::unfinished_heads>(
        {.name = "unfinished_heads",
         .kind = Kind::kInteger,
         .doc = "Client connections on which a request's head or a TLS handshake has begun and not "
                "ended, never more than half of `connections`. Each worker has its share; beyond "
                "it the oldest gets 408, or is closed.",
         .range = {.min = 1, .max = 16777216}}),
    bound<&Limits::unfinished_head_bytes>(
        {.name = "unfinished_head_bytes",
         .kind = Kind::kBytes,
         .doc = "Memory for such heads. Each worker has its share; beyond it the oldest gets 408.",
         .range = {.min = 1.0 * kMiB, .max = 1.0 * kTiB}}),
    bound<&Limits::tls_handshakes_per_client>(
        {.name = "tls_handshakes_per_client",
         .kind = Kind::kInteger,
         .doc = "TLS handshakes under way of one client address, or IPv6 network of 64 bits; what "
                "is more is closed at once. 0: no limit. Trusted proxies are not counted.",
         .range = {.min = 0, .max = 16777216}}),
    bound<&Limits::tls_handshakes_per_turn>(
        {.name = "tls_handshakes_per_turn",
         .kind = Kind::kInteger,
         .doc = "Steps of TLS handshakes in one turn of a worker, at up to half a millisecond "
                "each: those who are in wait no longer than for so many.",
         .range = {.min = 1, .max = 4096}}),
    bound<&Limits::pipeline>({.name = "pipeline",
                              .kind = Kind::kInteger,
                              .doc = "Requests of one connection that are answered in one turn of "
                                     "the loop, before others have theirs.",
                              .range = {.min = 1, .max = 4096}}),
    bound<&Limits::interim_responses>({.name = "interim_responses",
                                       .kind = Kind::kInteger,
                                       .doc = "Interim responses (1xx) that an origin may send "
                                              "before the final one; else 502.",
                                       .range = {.min = 1, .max = 65536}}),
    bound<&Limits::transfer_buffer_bytes>(
        {.name = "transfer_buffer",
         .kind = Kind::kBytes,
         .doc = "Of a body that is passed through and not stored, so much is held in memory when "
                "its reader is slower than its writer.",
         .range = {.min = 16.0 * kKiB, .max = 1.0 * kGiB}}),
    bound<&Limits::transfer_memory_bytes>(
        {.name = "transfer_memory",
         .kind = Kind::kBytes,
         .doc = "For bodies on their way, beside `cache.memory` and a quarter of it. Where it is "
                "used up, slow readers of clients beyond `transfer_memory_per_client` are cut, "
                "then stored responses evicted, then the slowest of all readers cut; transfers "
                "wait meanwhile.",
         .range = {.min = 1.0 * kMiB, .max = 64.0 * kTiB}}),
    bound<&Limits::transfer_memory_per_client_bytes>(
        {.name = "transfer_memory_per_client",
         .kind = Kind::kBytes,
         .doc = "What one client address (of IPv6 a network of 64 bits) may have held in memory "
                "by not taking its responses. Beyond it, what it has not taken of a response is "
                "not read ahead any more, and its slowest readers are cut first where memory is "
                "short. Set it higher where many clients come from one address. 0: no limit.",
         .range = {.min = 0, .max = 64.0 * kTiB}}),
    bound<&Limits::client_write_rate_min>(
        {.name = "client_write_rate_min",
         .kind = Kind::kBytes,
         .doc = "Bytes a second that a client takes at least of a response that is there, over "
                "`timeouts.client_write`; else it is cut. 0: no limit.",
         .range = {.min = 0, .max = 1.0 * kGiB}}),
};

}  // namespace

std::span<const Key> state_keys() { return kStateKeys; }
std::span<const Key> workers_keys() { return kWorkersKeys; }
std::span<const Key> admin_keys() { return kAdminKeys; }
std::span<const Key> log_keys() { return kLogKeys; }
std::span<const Key> timeouts_keys() { return kTimeoutsKeys; }
std::span<const Key> limits_keys() { return kLimitsKeys; }

}  // namespace encore::config
