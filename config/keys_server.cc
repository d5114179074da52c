// Keys of [state], [upgrade], [workers], [admin], [log], [timeouts] and [limits].
#include <array>

#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::array<std::string_view, 5> kLevels = {"debug", "info", "warn", "error", "off"};
constexpr std::array<std::string_view, 4> kRequestIds = {"off", "log", "forward", "respond"};

constexpr std::string_view kShareAccepted = "\"1%\" .. \"100%\", or a number, 0 .. 16777216";

constexpr std::array kStateKeys = {
    bound<&State::directory>({.name = "directory",
                              .doc = "Directory of the saved filter. Empty: not saved.",
                              .apply = Apply::kUpgrade,
                              .not_reloaded = "what it has was read at the start",
                              .accepted = "a directory or \"\"",
                              .item_check = check_file_name}),
    bound<&State::save_interval>({.name = "save_interval",
                                  .kind = Kind::kDuration,
                                  .doc = "Interval between saves. 0: at exit only.",
                                  .range = {.min = kSecond, .max = kDay},
                                  .zero_is_off = true}),
};

constexpr std::array kWorkersKeys = {
    bound<&Workers::count>({.name = "count",
                            .kind = Kind::kInteger,
                            .doc = "Worker threads. 0: one per core.",
                            .range = {.min = 1, .max = 256},
                            .zero_is_off = true,
                            .apply = Apply::kUpgrade,
                            .not_reloaded = "each worker has its own connections"}),
};

constexpr std::array kAdminKeys = {
    bound<&Admin::address>(
        {.name = "address",
         .kind = Kind::kTextList,
         .doc = "Addresses of the admin listener ([endpoints](COMMANDS.md#endpoints), "
                "[access](ACCESS.md#the-admin-listener)). Changes need no token on loopback or a "
                "Unix socket, elsewhere that of `token_file`. Without this key, `admin.sock` in "
                "`state.directory` is added. Empty: none.",
         .range = {.min = 0, .max = 8},
         .one_will_do = true,
         .apply = Apply::kUpgrade,
         .not_reloaded = "its sockets were opened at the start",
         .accepted = "\"127.0.0.1:3129\", \"[::1]:3129\", \"*:3129\", "
                     "\"unix:/run/encore-admin.sock\" or \"\"",
         .item_check = check_parsed<OptionalEndpointText>}),
    bound<&Admin::socket_mode>(
        {.name = "socket_mode",
         .doc = "Permissions of a Unix socket. Users who may write to it may connect.",
         .apply = Apply::kUpgrade,
         .not_reloaded = "its sockets were opened at the start",
         .accepted = "an octal number, as \"0660\"",
         .item_check = check_parsed<SocketModeText>}),
    bound<&Admin::allow_clients>({.name = "allow_clients",
                                  .kind = Kind::kTextList,
                                  .doc = "Allowed clients; others get 403, except from `/healthz` "
                                         "and `/readyz`. Clients of a Unix socket always may.",
                                  .range = {.min = 0, .max = 4096},
                                  .accepted = "addresses and blocks, as \"10.0.0.0/8\"",
                                  .item_check = check_parsed<CidrText>}),
    bound<&Admin::allow_hosts>(
        {.name = "allow_hosts",
         .kind = Kind::kTextList,
         .doc =
             "Accepted names in `Host`, in addition to `localhost` and the listener's addresses. "
             "Others are refused, so that no page in a browser can reach the listener.",
         .range = {.min = 0, .max = 64},
         .accepted = "host names",
         .item_check = check_host_name}),
    bound<&Admin::token_file>(
        {.name = "token_file",
         .doc = "File with the token for `GET /filter`, `POST /filter/adopt` and, away from "
                "loopback, all changes: one line of 16 to 256 letters, digits and `-._~+/=`, mode "
                "0600 or 0640. A reload reads it again. Empty: these are not served.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Admin::show_queries>(
        {.name = "show_queries",
         .kind = Kind::kBool,
         .doc = "Show queries of URLs on the live page and in `/api/outcome`; else `?...`."}),
    bound<&Admin::metrics_series>(
        {.name = "metrics_series",
         .kind = Kind::kInteger,
         .doc = "Listeners, origins, servers and rules, of each kind, with their own series in "
                "`/metrics`. Further ones count as `other` (`encore_metrics_series_clipped`).",
         .range = {.min = 1, .max = 10'000}}),
};

constexpr std::array kLogKeys = {
    bound<&Log::access>(
        {.name = "access",
         .doc = "Access log; `-`: standard output. Empty: none. SIGUSR1 reopens the file.",
         .apply = Apply::kUpgrade,
         .not_reloaded = "the file was opened at the start",
         .accepted = "a file name, \"-\" or \"\"",
         .item_check = check_file_name}),
    bound<&Log::format>(
        {.name = "format",
         .doc = "`squid` is Squid's native format; a line has Apache's directives "
                "([list](LOGS.md#formats)), as `%h %l %u %t \"%r\" %>s %O %{outcome}x`.",
         .accepted = "json, squid, combined, or a line with any of %h %a %l %u %t "
                     "%r %s %>s %b %B %O %I %D %T %{ms}T %m %U %q %H %v %p %X "
                     "%{Name}i %{Name}o %{field}x %%",
         .item_check = check_parsed<LogFormatText>}),
    bound<&Log::request_id>(
        {.name = "request_id",
         .kind = Kind::kChoice,
         .doc = "Receivers of a request's [id](LOGS.md#ids). `log`: the log. `forward`: also "
                "`[[origin]]` servers, in place of the client's. `respond`: also clients.",
         .choices = kRequestIds}),
    bound<&Log::redact_query>(
        {.name = "redact_query",
         .kind = Kind::kTextList,
         .doc = "Query parameters whose values logs and the live page replace by `***`.",
         .range = {.min = 0, .max = 256},
         .accepted = "names of parameters",
         .item_check = check_lower_query_name}),
    bound<&Log::decisions>(
        {.name = "decisions",
         .doc = "Journal of every cache decision, for `encore-sim verify`. Empty: none.",
         .apply = Apply::kRestart,
         .not_reloaded = "the journal is one file from start to end",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Log::level>({.name = "level",
                        .kind = Kind::kChoice,
                        .doc = "Level of diagnostics on standard error.",
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
    timeout<&Timeouts::client_idle>("client_idle", "Client connection between requests."),
    timeout<&Timeouts::client_body>("client_body", "Between two reads of a request body."),
    timeout<&Timeouts::client_write>("client_write", "Client that reads nothing of its response."),
    timeout<&Timeouts::collapse>(
        "collapse",
        "Request that waits for another one's response, or for a range of a body in progress. Then "
        "it goes to the origin itself (`cache.collapse`)."),
    timeout<&Timeouts::origin_connect>("origin_connect",
                                       "Connecting to a server, TLS included; also waiting for a "
                                       "connection (`upstream.connections_per_server`)."),
    timeout<&Timeouts::origin_response>("origin_response",
                                        "From the sent request to the head of the response."),
    timeout<&Timeouts::origin_idle>("origin_idle", "Between two reads of a response body."),
    timeout<&Timeouts::tunnel_idle>("tunnel_idle", "Idle tunnel."),
    timeout<&Timeouts::upgrade_idle>("upgrade_idle",
                                     "Idle connection of another protocol, such as WebSocket."),
    timeout<&Timeouts::pool_idle>("pool_idle", "Idle connection to a server."),
    timeout<&Timeouts::pool_age>(
        "pool_age", "Age at which a kept connection to a server carries no new request."),
    timeout<&Timeouts::dns>("dns", "Name lookup."),
    timeout<&Timeouts::drain>("drain",
                              "Time for requests in progress after SIGTERM, or after a reload that "
                              "no longer allows them. Connections without traffic, such as idle "
                              "tunnels and long polls, end after half of it."),
};

constexpr std::array kUpgradeKeys = {
    timeout<&Upgrade::start>(
        "start",
        "From the start of the new process until it serves, reading the disks' index included. "
        "After it the old process continues unchanged."),
    timeout<&Upgrade::idle>(
        "idle",
        "Time in the old process for one more request of an idle client, answered with "
        "`Connection: close`. Then idle connections close, spread over the same time."),
    timeout<&Upgrade::drain>("drain",
                             "Requests in progress in the old process; then they are cut."),
    timeout<&Upgrade::tunnels>("tunnels", "Tunnels there, WebSocket included; at least `drain`."),
};

constexpr std::array kLimitsKeys = {
    bound<&Limits::head_bytes>({.name = "head",
                                .kind = Kind::kBytes,
                                .doc = "Head of a request (else 431) or of a response (else 502).",
                                .range = {.min = 1.0 * kKiB, .max = 16.0 * kMiB}}),
    bound<&Limits::uri_bytes>({.name = "uri",
                               .kind = Kind::kBytes,
                               .doc = "Request target; else 414.",
                               .range = {.min = 64, .max = 16.0 * kMiB}}),
    bound<&Limits::fields>({.name = "fields",
                            .kind = Kind::kInteger,
                            .doc = "Fields of a head.",
                            .range = {.min = 8, .max = 65536}}),
    bound<&Limits::trailers_bytes>({.name = "trailers",
                                    .kind = Kind::kBytes,
                                    .doc = "Trailers of a chunked body.",
                                    .range = {.min = 0, .max = 16.0 * kMiB}}),
    bound<&Limits::chunk_extension_bytes>({.name = "chunk_extension",
                                           .kind = Kind::kBytes,
                                           .doc = "Extensions of one chunk.",
                                           .range = {.min = 0, .max = 1.0 * kMiB}}),
    bound<&Limits::request_body_bytes>({.name = "request_body",
                                        .kind = Kind::kBytes,
                                        .doc = "Request body; else 413. 0: no limit.",
                                        .range = {.min = 0, .max = 64.0 * kTiB}}),
    bound<&Limits::client_body_rate_min>(
        {.name = "client_body_rate_min",
         .kind = Kind::kBytes,
         .doc =
             "Minimum rate of a request body per second, over `timeouts.client_body` (a minute if "
             "that is 0), while the origin reads and has not responded; else 408. 0: no limit.",
         .range = {.min = 0, .max = 1.0 * kGiB}}),
    bound<&Limits::body_behind_response_bytes>(
        {.name = "body_behind_response",
         .kind = Kind::kBytes,
         .doc = "Bytes of a request body that are still sent after a complete response without "
                "`Connection: close`; beyond that both connections close.",
         .range = {.min = 0, .max = 64.0 * kTiB}}),
    bound<&Limits::connections>({.name = "connections",
                                 .kind = Kind::kInteger,
                                 .doc = "Client connections of all workers. Beyond it the longest "
                                        "idle one closes, or else the new one.",
                                 .range = {.min = 1, .max = 16777216}}),
    bound<&Limits::connections_per_client>(
        {.name = "connections_per_client",
         .doc = "Connections per client (address or IPv6 /64): a number, or a percentage of the "
                "allowed connections, at least one. `trusted_proxies` do not count. `\"100%\"` or "
                "0: no limit.",
         .number_will_do = true,
         .accepted = kShareAccepted,
         .item_check = check_parsed<ClientShareText>}),
    bound<&Limits::transfers_per_client>(
        {.name = "transfers_per_client",
         .doc = "Requests in progress per client, except hits from memory; more get 429. A number "
                "or percentage likewise; `\"100%\"` or 0: no limit.",
         .number_will_do = true,
         .accepted = kShareAccepted,
         .item_check = check_parsed<ClientShareText>}),
    bound<&Limits::failed_logins_per_client>(
        {.name = "failed_logins_per_client",
         .kind = Kind::kInteger,
         .doc = "Wrong credentials per minute and client; then passwords and wrong tokens get 429. "
                "0: no limit.",
         .range = {.min = 0, .max = 1e6}}),
    bound<&Limits::unfinished_heads>(
        {.name = "unfinished_heads",
         .kind = Kind::kInteger,
         .doc =
             "Connections with an unfinished head or TLS handshake, at most half of `connections`, "
             "divided among workers. Beyond it the oldest gets 408, or is closed.",
         .range = {.min = 1, .max = 16777216}}),
    bound<&Limits::unfinished_head_bytes>(
        {.name = "unfinished_head_bytes",
         .kind = Kind::kBytes,
         .doc =
             "Memory for unfinished heads, divided among workers. Beyond it the oldest gets 408.",
         .range = {.min = 1.0 * kMiB, .max = 1.0 * kTiB}}),
    bound<&Limits::tls_handshakes_per_client>(
        {.name = "tls_handshakes_per_client",
         .kind = Kind::kInteger,
         .doc = "TLS handshakes in progress per client; more are closed. Trusted proxies do not "
                "count. 0: no limit.",
         .range = {.min = 0, .max = 16777216}}),
    bound<&Limits::tls_handshakes_per_turn>(
        {.name = "tls_handshakes_per_turn",
         .kind = Kind::kInteger,
         .doc = "Steps of TLS handshakes (up to half a millisecond each) per turn of a worker, "
                "which bounds the delay of other connections.",
         .range = {.min = 1, .max = 4096}}),
    bound<&Limits::pipeline>({.name = "pipeline",
                              .kind = Kind::kInteger,
                              .doc = "Pipelined requests of a connection answered per turn.",
                              .range = {.min = 1, .max = 4096}}),
    bound<&Limits::interim_responses>(
        {.name = "interim_responses",
         .kind = Kind::kInteger,
         .doc = "Interim responses (1xx) of an origin before the final one; else 502.",
         .range = {.min = 1, .max = 65536}}),
    bound<&Limits::transfer_buffer_bytes>(
        {.name = "transfer_buffer",
         .kind = Kind::kBytes,
         .doc = "Buffer of an unstored body whose reader is slower than its origin.",
         .range = {.min = 16.0 * kKiB, .max = 1.0 * kGiB}}),
    bound<&Limits::transfer_memory_bytes>(
        {.name = "transfer_memory",
         .kind = Kind::kBytes,
         .doc = "Memory for bodies in flight, in addition to `cache.memory` and a quarter of it. "
                "Beyond it transfers wait, and slow readers are cut "
                "([order](LIMITS.md#slow-clients)).",
         .range = {.min = 1.0 * kMiB, .max = 64.0 * kTiB}}),
    bound<&Limits::transfer_memory_per_client_bytes>(
        {.name = "transfer_memory_per_client",
         .kind = Kind::kBytes,
         .doc = "Unread response data per client in memory. Beyond it there is no read-ahead, and "
                "its slowest readers are cut first. Raise it if many clients share an address. 0: "
                "no limit.",
         .range = {.min = 0, .max = 64.0 * kTiB}}),
    bound<&Limits::client_write_rate_min>(
        {.name = "client_write_rate_min",
         .kind = Kind::kBytes,
         .doc = "Minimum rate at which a client reads, per second, over `timeouts.client_write`; "
                "else it is cut. 0: no limit.",
         .range = {.min = 0, .max = 1.0 * kGiB}}),
};

}  // namespace

std::span<const Key> state_keys() { return kStateKeys; }
std::span<const Key> workers_keys() { return kWorkersKeys; }
std::span<const Key> admin_keys() { return kAdminKeys; }
std::span<const Key> log_keys() { return kLogKeys; }
std::span<const Key> upgrade_keys() { return kUpgradeKeys; }
std::span<const Key> timeouts_keys() { return kTimeoutsKeys; }
std::span<const Key> limits_keys() { return kLimitsKeys; }

}  // namespace encore::config
