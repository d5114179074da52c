// Keys of [[origin]], [forward], [upstream] and [http].
#include <array>

#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::array<std::string_view, 2> kHostHeaders = {"preserve", "origin"};
constexpr std::array<std::string_view, 4> kBalances = {"round-robin", "least-requests", "hash",
                                                       "client"};
constexpr std::array<std::string_view, 2> kAdmissionHints = {"off", "trusted"};
constexpr std::array<std::string_view, 3> kPrivate = {"never", "loopback-clients", "always"};

constexpr std::array kOriginKeys = {
    bound<&Origin::host>(
        {.name = "host",
         .doc = "Requested host; `*.` matches all names below. Exact names win, then the longest.",
         .accepted = "\"www.example.com\", \"*.example.com\" or \"*\"",
         .item_check = check_host_pattern}),
    bound<&Origin::path>({.name = "path",
                          .doc = "Path prefix. The longest wins.",
                          .accepted = "a path that starts with \"/\"",
                          .item_check = check_path_prefix}),
    bound<&Origin::servers>(
        {.name = "servers",
         .kind = Kind::kTextList,
         .doc = "Upstream servers, exempt from `forward.private_destinations`. `weight=N`: 1 .. "
                "100. `backup`: used if no other is available.",
         .range = {.min = 1, .max = 256},
         .accepted = "\"http://host:port\", \"https://host:port\" or "
                     "\"unix:/run/app.sock\"; behind it weight=N, backup or "
                     "both",
         .item_check = check_parsed<ServerText>}),
    bound<&Origin::balance>(
        {.name = "balance",
         .kind = Kind::kChoice,
         .doc =
             "Choice of the server by weight: `round-robin`; `least-requests`, the less busy of "
             "two random ones; `hash`, the same one for a URL; `client`, the same one for a client "
             "(its IPv4 address or IPv6 /64). With `hash`, a server with 1.25 times its share of "
             "requests passes new ones on. With `client`, one that fails moves its own clients "
             "only.",
         .choices = kBalances}),
    bound<&Origin::hot_share>(
        {.name = "hot_share",
         .kind = Kind::kReal,
         .doc = "`hash`: a URL with this share of the requests for these servers, of the last 1000 "
                "to 2000, goes to all of them as with `least-requests`. 0: none does.",
         .range = {.min = 0.02, .max = 1},
         .zero_is_off = true}),
    bound<&Origin::admission_hint>(
        {.name = "admission_hint",
         .kind = Kind::kChoice,
         .doc = "`trusted`: the servers are caches, and their `Cache-Status` is believed. A "
                "response that they had an earlier request for is stored immediately, by policies "
                "that count requests.",
         .choices = kAdmissionHints}),
    bound<&Origin::slow_start>({.name = "slow_start",
                                .kind = Kind::kDuration,
                                .doc = "Time in which a recovered server's weight grows from a "
                                       "tenth to all of it. 0: immediately.",
                                .range = {.min = 1e6, .max = kDay},
                                .zero_is_off = true}),
    bound<&Origin::health_path>(
        {.name = "health_path",
         .doc = "Path and query of health checks (`GET`). Empty: no checks.",
         .accepted = "a path that starts with \"/\", or \"\"",
         .item_check = check_target_or_empty}),
    bound<&Origin::health_status>({.name = "health_status",
                                   .kind = Kind::kIntegerList,
                                   .doc = "Good statuses. Empty: 200 to 399.",
                                   .range = {.min = 200, .max = 599}}),
    bound<&Origin::health_interval>({.name = "health_interval",
                                     .kind = Kind::kDuration,
                                     .doc = "From the end of a check to the next.",
                                     .range = {.min = 1e7, .max = kDay}}),
    bound<&Origin::health_timeout>({.name = "health_timeout",
                                    .kind = Kind::kDuration,
                                    .doc = "Time limit of a check, connection included.",
                                    .range = {.min = 1e7, .max = kDay}}),
    bound<&Origin::health_down>({.name = "health_down",
                                 .kind = Kind::kInteger,
                                 .doc = "Consecutive failed checks until a server is down.",
                                 .range = {.min = 1, .max = 1000}}),
    bound<&Origin::health_up>({.name = "health_up",
                               .kind = Kind::kInteger,
                               .doc = "Consecutive good checks until it is up again.",
                               .range = {.min = 1, .max = 1000}}),
    bound<&Origin::host_header>(
        {.name = "host_header",
         .kind = Kind::kChoice,
         .doc = "`Host` for the origin: the client's (`preserve`) or the server's name.",
         .choices = kHostHeaders}),
    bound<&Origin::host_header_value>({.name = "host_header_value",
                                       .doc = "`Host` for the origin; overrides `host_header`.",
                                       .accepted = "\"host\", \"host:port\" or \"\"",
                                       .item_check = check_authority_or_empty}),
    bound<&Origin::tls_verify>(
        {.name = "tls_verify",
         .kind = Kind::kBool,
         .doc = "Verify certificates of https servers. Disable for tests only."}),
    bound<&Origin::tls_ca_file>(
        {.name = "tls_ca_file",
         .doc = "CA certificates (PEM) for this origin. Empty: `upstream.tls_ca_file`.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Origin::tls_server_name>(
        {.name = "tls_server_name",
         .doc = "Name for SNI and verification. Empty: the server's host.",
         .accepted = "a host name or \"\"",
         .item_check = check_host_name}),
    bound<&Origin::tls_certificate>({.name = "tls_certificate",
                                     .doc = "Client certificate (PEM, with its chain) for these "
                                            "servers. Empty: that of `upstream`.",
                                     .accepted = "a file name or \"\"",
                                     .item_check = check_file_name}),
    bound<&Origin::tls_key>({.name = "tls_key",
                             .doc = "Key (PEM) of `tls_certificate`.",
                             .accepted = "a file name or \"\"",
                             .item_check = check_file_name}),
    bound<&Origin::http2>({.name = "http2",
                           .kind = Kind::kBool,
                           .doc = "Speak HTTP/2, as gRPC needs. `https` servers choose by ALPN; "
                                  "others must accept prior knowledge, health checks included."}),
};

constexpr std::array kForwardKeys = {
    bound<&Forward::allow_clients>({.name = "allow_clients",
                                    .kind = Kind::kTextList,
                                    .doc = "Allowed clients of forward listeners; others get 403.",
                                    .range = {.min = 0, .max = 4096},
                                    .accepted = "addresses and blocks, as \"10.0.0.0/8\"",
                                    .item_check = check_parsed<CidrText>}),
    bound<&Forward::connect_ports>({.name = "connect_ports",
                                    .kind = Kind::kIntegerList,
                                    .doc = "Ports for `CONNECT`; others get 403. The default "
                                           "covers package managers and registries.",
                                    .range = {.min = 1, .max = 65535}}),
    bound<&Forward::safe_ports>(
        {.name = "safe_ports",
         .kind = Kind::kTextList,
         .doc = "Ports for other requests; others get 403. The default excludes mail, remote "
                "shells and name servers, whose protocols a request can abuse.",
         .range = {.min = 0, .max = 256},
         .accepted = "ports, as \"80\" or \"1025-65535\"",
         .item_check = check_parsed<PortRangeText>}),
    bound<&Forward::private_destinations>(
        {.name = "private_destinations",
         .kind = Kind::kChoice,
         .doc = "Clients that may reach loopback, private and link-local addresses, by the "
                "connected address, not the name. The proxy's own listeners are never reachable.",
         .choices = kPrivate}),
    bound<&Forward::parent>(
        {.name = "parent",
         .doc = "Proxy for all requests (https by `CONNECT`). It resolves names, so "
                "`private_destinations` checks only addresses and `localhost` here. Empty: none.",
         .accepted = "\"http://host:port\" or \"\"",
         .item_check = check_parsed<OptionalUrlText>}),
    bound<&Forward::https>({.name = "https",
                            .kind = Kind::kTextList,
                            .doc = "Hosts requested by https (port 443) when clients request them "
                                   "by http (port 80). Stored under the http URL.",
                            .range = {.min = 0, .max = 4096},
                            .accepted = "\"www.example.com\", \"*.example.com\" or \"*\"",
                            .item_check = check_host_pattern}),
};

constexpr std::array kUpstreamKeys = {
    bound<&Upstream::pool_per_server>({.name = "pool_per_server",
                                       .kind = Kind::kInteger,
                                       .doc = "Idle connections per worker and server. 0: none.",
                                       .range = {.min = 0, .max = 65536}}),
    bound<&Upstream::connections_per_server>(
        {.name = "connections_per_server",
         .kind = Kind::kInteger,
         .doc = "Connections per server, or per destination of forward listeners without "
                "`CONNECT`, idle ones included; divided among workers, rounded up. Further "
                "requests queue. 0: no limit.",
         .range = {.min = 0, .max = 1 << 24}}),
    bound<&Upstream::connections_per_client>(
        {.name = "connections_per_client",
         .doc = "The same for one client (address or IPv6 /64): a percentage of "
                "`connections_per_server`, at least one, or a number. Its further requests queue, "
                "in turn with other clients. Trusted proxies that name no client may use all. "
                "`\"100%\"` or 0: no limit.",
         .number_will_do = true,
         .accepted = "\"1%\" .. \"100%\", or a number, 0 .. 16777216",
         .item_check = check_parsed<ClientShareText>}),
    bound<&Upstream::http2_streams>({.name = "http2_streams",
                                     .kind = Kind::kInteger,
                                     .doc = "Concurrent requests per HTTP/2 connection, if the "
                                            "server accepts them. More open another.",
                                     .range = {.min = 1, .max = 10000}}),
    bound<&Upstream::waiting_per_server>(
        {.name = "waiting_per_server",
         .kind = Kind::kInteger,
         .doc = "Requests queued for a server, divided likewise. More, or after "
                "`timeouts.origin_connect`, go to another server or get 503. If one client "
                "fills the queue, its latest request gives way. 0: none.",
         .range = {.min = 0, .max = 1 << 24}}),
    bound<&Upstream::retries>(
        {.name = "retries",
         .kind = Kind::kInteger,
         .doc =
             "Repetitions of a request that failed before its response began and may safely be "
             "repeated (RFC 9110 9.2.2), except after a timeout. Refused connections do not count.",
         .range = {.min = 0, .max = 16}}),
    bound<&Upstream::eject_after>({.name = "eject_after",
                                   .kind = Kind::kInteger,
                                   .doc = "Consecutive failures (no connection, reset, early end, "
                                          "timeout) after which a server is ejected.",
                                   .range = {.min = 1, .max = 1000}}),
    bound<&Upstream::set_aside>(
        {.name = "set_aside",
         .kind = Kind::kDuration,
         .doc = "How long an ejected server gets no requests while another is available; then one "
                "repeatable request tries it. Each further failure doubles it, up to "
                "`upstream.set_aside_max`, plus up to a tenth at random. 0: never.",
         .range = {.min = 1e6, .max = kDay},
         .zero_is_off = true}),
    bound<&Upstream::set_aside_max>({.name = "set_aside_max",
                                     .kind = Kind::kDuration,
                                     .doc = "Longest ejection; at least `upstream.set_aside`.",
                                     .range = {.min = 1e6, .max = kDay}}),
    bound<&Upstream::first_byte>(
        {.name = "first_byte",
         .kind = Kind::kDuration,
         .doc = "Time for a response to begin, if less than `timeouts.origin_response`. Then the "
                "server is ejected, and a repeatable request goes to another (`upstream.retries`); "
                "others get 504. 0: none.",
         .range = {.min = 1e6, .max = kDay},
         .zero_is_off = true}),
    bound<&Upstream::total>(
        {.name = "total",
         .kind = Kind::kDuration,
         .doc = "Time for a request to an origin, from the search for a connection to the last "
                "byte, retries included; then 504, or a cut response. 0: no limit.",
         .range = {.min = 1e6, .max = kDay},
         .zero_is_off = true}),
    bound<&Upstream::buffer_requests_bytes>(
        {.name = "buffer_requests",
         .kind = Kind::kBytes,
         .doc = "Bytes of a request body read before a connection to the origin opens, so that "
                "slow clients hold none. Each upload takes that memory. `100 Continue` is not "
                "delayed. 0: none.",
         .range = {.min = 1024, .max = 16.0 * kMiB},
         .zero_is_off = true}),
    bound<&Upstream::tls_verify>({.name = "tls_verify",
                                  .kind = Kind::kBool,
                                  .doc = "Verify certificates of https servers. Disable for tests "
                                         "only; false overrides `[[origin]]`."}),
    bound<&Upstream::tls_ca_file>({.name = "tls_ca_file",
                                   .doc = "CA certificates (PEM) of servers. Empty: the system's.",
                                   .accepted = "a file name or \"\"",
                                   .item_check = check_file_name}),
    bound<&Upstream::tls_certificate>(
        {.name = "tls_certificate",
         .doc = "Client certificate (PEM, with its chain) for all https servers, those of forward "
                "clients included. Empty: none.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Upstream::tls_key>({.name = "tls_key",
                               .doc = "Key (PEM) of `upstream.tls_certificate`.",
                               .accepted = "a file name or \"\"",
                               .item_check = check_file_name}),
    bound<&Upstream::nameservers>(
        {.name = "nameservers",
         .kind = Kind::kTextList,
         .doc = "Name servers, in order. Empty: those of `/etc/resolv.conf`, with its search list. "
                "A reload reads that and `/etc/hosts` again and empties the cache.",
         .range = {.min = 0, .max = 16},
         .accepted = "addresses, as \"192.0.2.53\", \"127.0.0.1:5353\" or \"[2001:db8::1]:53\"",
         .item_check = check_parsed<NameserverText>}),
    bound<&Upstream::dns_ttl_min>({.name = "dns_ttl_min",
                                   .kind = Kind::kDuration,
                                   .doc = "Shortest caching of addresses.",
                                   .range = {.min = 0, .max = 7 * kDay}}),
    bound<&Upstream::dns_ttl_max>({.name = "dns_ttl_max",
                                   .kind = Kind::kDuration,
                                   .doc = "Longest caching of addresses. 0: none.",
                                   .range = {.min = 0, .max = 7 * kDay}}),
    bound<&Upstream::dns_negative_ttl>(
        {.name = "dns_negative_ttl",
         .kind = Kind::kDuration,
         .doc = "Caching of missing names and failed lookups. 0: none.",
         .range = {.min = 0, .max = kDay}}),
    bound<&Upstream::dns_cache_entries>(
        {.name = "dns_cache_entries",
         .kind = Kind::kInteger,
         .doc = "Names cached per worker, 400 bytes (at most 2.5 KiB) each; the least recently "
                "used leave. 0: none.",
         .range = {.min = 0, .max = 1 << 24}}),
    bound<&Upstream::dns_lookups>({.name = "dns_lookups",
                                   .kind = Kind::kInteger,
                                   .doc = "Lookups in progress per worker, 5 KiB each and a "
                                          "descriptor per 16; more get 503. Equal ones are joined.",
                                   .range = {.min = 1, .max = 65536}}),
    bound<&Upstream::dns_lookups_per_client>(
        {.name = "dns_lookups_per_client",
         .kind = Kind::kInteger,
         .doc = "The same for one client of forward listeners.",
         .range = {.min = 1, .max = 65536}}),
};

constexpr std::array kHttpKeys = {
    bound<&Http::via>({.name = "via",
                       .doc = "Pseudonym in `Via`, which also detects loops. Six random digits are "
                              "added at each start.",
                       .accepted = "letters, digits and -._",
                       .item_check = check_token}),
    bound<&Http::error_pages>(
        {.name = "error_pages",
         .doc = "Directory of pages for the proxy's own responses: `404.html`, `503.json`, or "
                "`4xx.html`, `5xx.txt` for a class, at most 256 KiB each, as html, htm, txt, json, "
                "xml or svg. Read at start and reload. Empty: a line of text.",
         .accepted = "a folder or \"\"",
         .item_check = check_file_name}),
};

}  // namespace

std::span<const Key> origin_keys() { return kOriginKeys; }
std::span<const Key> forward_keys() { return kForwardKeys; }
std::span<const Key> upstream_keys() { return kUpstreamKeys; }
std::span<const Key> http_keys() { return kHttpKeys; }

}  // namespace encore::config
