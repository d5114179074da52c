// Keys of [[origin]], [forward], [upstream] and [http].
#include <array>

#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::array<std::string_view, 2> kHostHeaders = {"preserve", "origin"};
constexpr std::array<std::string_view, 3> kBalances = {"round-robin", "least-requests", "hash"};
constexpr std::array<std::string_view, 3> kPrivate = {"never", "loopback-clients", "always"};

constexpr std::array kOriginKeys = {
    bound<&Origin::host>({.name = "host",
                          .doc = "Which requests: a host name, `*.example.com` for every name "
                                 "below it, or `*`. An exact name wins over `*.`, the longer "
                                 "`*.` over the shorter, and all over `*`.",
                          .accepted = "\"www.example.com\", \"*.example.com\" or \"*\"",
                          .item_check = check_host_pattern}),
    bound<&Origin::path>({.name = "path",
                          .doc = "Which of their paths: a prefix. The longest wins.",
                          .accepted = "a path that starts with \"/\"",
                          .item_check = check_path_prefix}),
    bound<&Origin::servers>({.name = "servers",
                             .kind = Kind::kTextList,
                             .doc = "The origin's servers. Behind a URL may stand `weight=N` (1 .. "
                                    "100, its share beside the others; 1 where nothing is said) "
                                    "and `backup` (asked where no other is to be had). They are "
                                    "exempt from `forward.private_destinations`.",
                             .range = {.min = 1, .max = 256},
                             .accepted = "\"http://host:port\", \"https://host:port\" or "
                                         "\"unix:/run/app.sock\"; behind it weight=N, backup or "
                                         "both",
                             .item_check = check_parsed<ServerText>}),
    bound<&Origin::balance>(
        {.name = "balance",
         .kind = Kind::kChoice,
         .doc = "Which server is asked: each in its turn (`round-robin`), of two drawn at random "
                "the one with fewer requests under way (`least-requests`), or always the same one "
                "for a URL (`hash`: consistent hashing on the cache key with bounded loads; a "
                "server with 1.25 times its share of what is under way passes the next request "
                "on). All of them go by the weights.",
         .choices = kBalances}),
    bound<&Origin::slow_start>(
        {.name = "slow_start",
         .kind = Kind::kDuration,
         .doc = "A server that comes back has a tenth of its weight at first, and all of it after "
                "this time. 0: at once.",
         .range = {.min = 1e6, .max = kDay},
         .zero_is_off = true}),
    bound<&Origin::health_path>(
        {.name = "health_path",
         .doc = "What each of the servers is asked for (`GET`, on a connection of its own) to find "
                "out whether it is well: a path, with its query. Empty: they are not asked.",
         .accepted = "a path that starts with \"/\", or \"\"",
         .item_check = check_target_or_empty}),
    bound<&Origin::health_status>(
        {.name = "health_status",
         .kind = Kind::kIntegerList,
         .doc = "The statuses of a server that is well. None: 200 to 399.",
         .range = {.min = 200, .max = 599}}),
    bound<&Origin::health_interval>({.name = "health_interval",
                                     .kind = Kind::kDuration,
                                     .doc = "The time from the end of one check to the next.",
                                     .range = {.min = 1e7, .max = kDay}}),
    bound<&Origin::health_timeout>({.name = "health_timeout",
                                    .kind = Kind::kDuration,
                                    .doc = "How long a check may take, connection included.",
                                    .range = {.min = 1e7, .max = kDay}}),
    bound<&Origin::health_down>(
        {.name = "health_down",
         .kind = Kind::kInteger,
         .doc = "After how many checks in a row that failed a server is down: it is asked only "
                "where no other is to be had.",
         .range = {.min = 1, .max = 1000}}),
    bound<&Origin::health_up>(
        {.name = "health_up",
         .kind = Kind::kInteger,
         .doc = "After how many checks in a row that were good it is up again.",
         .range = {.min = 1, .max = 1000}}),
    bound<&Origin::host_header>({.name = "host_header",
                                 .kind = Kind::kChoice,
                                 .doc = "`Host` of what is sent to the origin: the client's "
                                        "(`preserve`) or the server's own name (`origin`).",
                                 .choices = kHostHeaders}),
    bound<&Origin::host_header_value>(
        {.name = "host_header_value",
         .doc = "`Host` of what is sent to the origin, whatever `host_header` says. Empty: as that "
                "says.",
         .accepted = "\"host\", \"host:port\" or \"\"",
         .item_check = check_authority_or_empty}),
    bound<&Origin::tls_verify>({.name = "tls_verify",
                                .kind = Kind::kBool,
                                .doc = "Whether the certificate of an https server must be "
                                       "valid. Off only for tests."}),
    bound<&Origin::tls_ca_file>({.name = "tls_ca_file",
                                 .doc = "Certificates (PEM) that may have signed this origin's. "
                                        "Empty: `upstream.tls_ca_file`.",
                                 .accepted = "a file name or \"\"",
                                 .item_check = check_file_name}),
    bound<&Origin::tls_server_name>({.name = "tls_server_name",
                                     .doc = "The name asked for and verified by TLS. Empty: the "
                                            "server's host.",
                                     .accepted = "a host name or \"\"",
                                     .item_check = check_host_name}),
    bound<&Origin::tls_certificate>(
        {.name = "tls_certificate",
         .doc = "The certificate (PEM, its chain behind it) that is shown to servers that ask for "
                "one; `tls_key` has its key. Empty: that of `upstream`.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Origin::tls_key>({.name = "tls_key",
                             .doc = "The key (PEM) of `tls_certificate`.",
                             .accepted = "a file name or \"\"",
                             .item_check = check_file_name}),
    bound<&Origin::http2>(
        {.name = "http2",
         .kind = Kind::kBool,
         .doc =
             "Speak HTTP/2 to the servers, as gRPC needs it. `https` servers choose by ALPN; one "
             "that chooses `http/1.1` gets that. All others must know HTTP/2 without being asked "
             "(prior knowledge), health checks included."}),
};

constexpr std::array kForwardKeys = {
    bound<&Forward::allow_clients>({.name = "allow_clients",
                                    .kind = Kind::kTextList,
                                    .doc = "Who may use forward listeners; others get 403.",
                                    .range = {.min = 0, .max = 4096},
                                    .accepted = "addresses and blocks, as \"10.0.0.0/8\"",
                                    .item_check = check_parsed<CidrText>}),
    bound<&Forward::connect_ports>(
        {.name = "connect_ports",
         .kind = Kind::kIntegerList,
         .doc = "Ports that `CONNECT` may reach; others get 403. The default is "
                "where package managers and their registries ask.",
         .range = {.min = 1, .max = 65535}}),
    bound<&Forward::safe_ports>(
        {.name = "safe_ports",
         .kind = Kind::kTextList,
         .doc = "Ports that all other requests through forward listeners may reach, single ones "
                "and ranges; others get 403. Those of mail, remote shells and name servers are "
                "left out, for what speaks another protocol can be made to act on a request.",
         .range = {.min = 0, .max = 256},
         .accepted = "ports, as \"80\" or \"1025-65535\"",
         .item_check = check_parsed<PortRangeText>}),
    bound<&Forward::private_destinations>(
        {.name = "private_destinations",
         .kind = Kind::kChoice,
         .doc = "Who may reach loopback, private and link-local addresses through a forward "
                "listener. It is the address connected to that counts, not the name. The proxy's "
                "own listeners are never reached.",
         .choices = kPrivate}),
    bound<&Forward::parent>(
        {.name = "parent",
         .doc = "Another proxy that forward listeners ask instead of the origins, by `CONNECT` for "
                "https and for clients' own `CONNECT`. It resolves the names: of "
                "`private_destinations` only addresses and `localhost` are checked here, the rest "
                "is the parent's to deny. Empty: origins are asked.",
         .accepted = "\"http://host:port\" or \"\"",
         .item_check = check_parsed<OptionalUrlText>}),
    bound<&Forward::https>(
        {.name = "https",
         .kind = Kind::kTextList,
         .doc =
             "Hosts that are asked by https, at port 443, when a client asks for them by http at "
             "port 80. What is stored is stored for the http URL.",
         .range = {.min = 0, .max = 4096},
         .accepted = "\"www.example.com\", \"*.example.com\" or \"*\"",
         .item_check = check_host_pattern}),
};

constexpr std::array kUpstreamKeys = {
    bound<&Upstream::pool_per_server>({.name = "pool_per_server",
                                       .kind = Kind::kInteger,
                                       .doc = "Idle connections that a worker keeps to one server. "
                                              "0: none, every request connects.",
                                       .range = {.min = 0, .max = 65536}}),
    bound<&Upstream::connections_per_server>(
        {.name = "connections_per_server",
         .kind = Kind::kInteger,
         .doc = "Connections to one server, or to one destination of forward listeners, idle ones "
                "included and `CONNECT` left out; each worker has its share, rounded up. Requests "
                "beyond it wait in line for the next that is free. 0: no limit.",
         .range = {.min = 0, .max = 1 << 24}}),
    bound<&Upstream::connections_per_client>(
        {.name = "connections_per_client",
         .doc =
             "Connections to one server that the requests of one client address, or IPv6 network "
             "of 64 bits, use at most: a percentage of `connections_per_server`, rounded down, "
             "but at least one, or a number, shared like that. The rest is kept free for other "
             "clients, even while none of them asks. Requests beyond it wait in line, where "
             "clients take turns. Trusted proxies that name no client may use all. `\"100%\"` "
             "or 0: no limit.",
         .number_will_do = true,
         .accepted = "\"1%\" .. \"100%\", or a number, 0 .. 16777216",
         .item_check = check_parsed<ClientShareText>}),
    bound<&Upstream::http2_streams>(
        {.name = "http2_streams",
         .kind = Kind::kInteger,
         .doc = "Requests that one connection of HTTP/2 to a server carries at the same time, as "
                "far as the server accepts them. A further one opens another connection.",
         .range = {.min = 1, .max = 10000}}),
    bound<&Upstream::waiting_per_server>(
        {.name = "waiting_per_server",
         .kind = Kind::kInteger,
         .doc = "Requests that wait for a connection to one server, shared likewise. Those beyond "
                "it, or that have waited for `timeouts.origin_connect`, go to another server of "
                "the origin, or get 503. Where one client fills the line, its latest request gives "
                "way to another client's. 0: none waits.",
         .range = {.min = 0, .max = 1 << 24}}),
    bound<&Upstream::retries>({.name = "retries",
                               .kind = Kind::kInteger,
                               .doc = "How often a request is sent again, on another connection or "
                                      "server, when it failed before an answer began and may "
                                      "safely be repeated (RFC 9110 9.2.2). A server that does not "
                                      "answer in time is not asked again; one that refuses the "
                                      "connection costs none of these: nothing was sent.",
                               .range = {.min = 0, .max = 16}}),
    bound<&Upstream::eject_after>(
        {.name = "eject_after",
         .kind = Kind::kInteger,
         .doc = "After how many failures in a row (no connection, a reset or an end before an "
                "answer, no answer in time) a server is set aside.",
         .range = {.min = 1, .max = 1000}}),
    bound<&Upstream::set_aside>(
        {.name = "set_aside",
         .kind = Kind::kDuration,
         .doc = "How long a server that failed is not asked while another of its origin is left; "
                "then one request that may be repeated tries it. Each time that this fails, too, "
                "the time doubles, up to `upstream.set_aside_max`, and each time up to a tenth is "
                "added at random. 0: it keeps its turn.",
         .range = {.min = 1e6, .max = kDay},
         .zero_is_off = true}),
    bound<&Upstream::set_aside_max>(
        {.name = "set_aside_max",
         .kind = Kind::kDuration,
         .doc = "The longest time that a server is set aside for. Below `upstream.set_aside`: that "
                "is it, always.",
         .range = {.min = 1e6, .max = kDay}}),
    bound<&Upstream::first_byte>(
        {.name = "first_byte",
         .kind = Kind::kDuration,
         .doc = "How long an answer may take to begin, where this is less than "
                "`timeouts.origin_response`. The server is set aside then; a request that may be "
                "repeated goes to another one of its origin (`upstream.retries`), others get 504. "
                "0: `timeouts.origin_response` alone.",
         .range = {.min = 1e6, .max = kDay},
         .zero_is_off = true}),
    bound<&Upstream::total>(
        {.name = "total",
         .kind = Kind::kDuration,
         .doc = "How long a request to an origin may take in all, from the search for a connection "
                "to the last byte of its response, retries included. What has not begun by then "
                "is answered with 504, what has is cut off. 0: no limit.",
         .range = {.min = 1e6, .max = kDay},
         .zero_is_off = true}),
    bound<&Upstream::buffer_requests_bytes>(
        {.name = "buffer_requests",
         .kind = Kind::kBytes,
         .doc = "So much of a request's body is taken from the client before a connection to the "
                "origin is asked for, so that a slow client holds none; all of it, where it is no "
                "longer. What is longer streams from there on. Each upload under way takes that "
                "much memory. A client that waits for `100 Continue` is not waited for. 0: none.",
         .range = {.min = 1024, .max = 16.0 * kMiB},
         .zero_is_off = true}),
    bound<&Upstream::tls_verify>({.name = "tls_verify",
                                  .kind = Kind::kBool,
                                  .doc = "Whether certificates of https servers must be valid. Off "
                                         "only for tests; false here overrides `[[origin]]`."}),
    bound<&Upstream::tls_ca_file>({.name = "tls_ca_file",
                                   .doc = "Certificates (PEM) that may have signed those of origin "
                                          "servers. Empty: the system's.",
                                   .accepted = "a file name or \"\"",
                                   .item_check = check_file_name}),
    bound<&Upstream::tls_certificate>(
        {.name = "tls_certificate",
         .doc =
             "The certificate (PEM, its chain behind it) that is shown to https servers that ask "
             "for one, those that forward clients name included. Empty: none is.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Upstream::tls_key>({.name = "tls_key",
                               .doc = "The key (PEM) of `upstream.tls_certificate`.",
                               .accepted = "a file name or \"\"",
                               .item_check = check_file_name}),
    bound<&Upstream::nameservers>(
        {.name = "nameservers",
         .kind = Kind::kTextList,
         .doc = "Name servers that are asked for the addresses of origins, in this order. Empty: "
                "those of `/etc/resolv.conf`, with its search list. A reload reads that file and "
                "`/etc/hosts` again and forgets what was asked before.",
         .range = {.min = 0, .max = 16},
         .accepted = "addresses, as \"192.0.2.53\", \"127.0.0.1:5353\" or \"[2001:db8::1]:53\"",
         .item_check = check_parsed<NameserverText>}),
    bound<&Upstream::dns_ttl_min>({.name = "dns_ttl_min",
                                   .kind = Kind::kDuration,
                                   .doc = "The addresses of a name are remembered for as long as "
                                          "the name server says, but not for less than this.",
                                   .range = {.min = 0, .max = 7 * kDay}}),
    bound<&Upstream::dns_ttl_max>({.name = "dns_ttl_max",
                                   .kind = Kind::kDuration,
                                   .doc = "Nor for more than this. 0: they are not remembered.",
                                   .range = {.min = 0, .max = 7 * kDay}}),
    bound<&Upstream::dns_negative_ttl>(
        {.name = "dns_negative_ttl",
         .kind = Kind::kDuration,
         .doc = "How long it is remembered that there is no such name, or that no name server "
                "gives an answer. 0: it is asked for each time.",
         .range = {.min = 0, .max = kDay}}),
    bound<&Upstream::dns_cache_entries>(
        {.name = "dns_cache_entries",
         .kind = Kind::kInteger,
         .doc = "Names that a worker remembers, at some 400 bytes each (2.5 KiB at most); those "
                "used longest ago leave first. 0: none.",
         .range = {.min = 0, .max = 1 << 24}}),
    bound<&Upstream::dns_lookups>(
        {.name = "dns_lookups",
         .kind = Kind::kInteger,
         .doc = "Names that a worker asks for at a time, each once whoever waits for it; requests "
                "for more get 503. Takes about 5 KiB each, and a descriptor for 16.",
         .range = {.min = 1, .max = 65536}}),
    bound<&Upstream::dns_lookups_per_client>(
        {.name = "dns_lookups_per_client",
         .kind = Kind::kInteger,
         .doc = "Of these, what one client address, or IPv6 network of 64 bits, may have begun "
                "through forward listeners.",
         .range = {.min = 1, .max = 65536}}),
};

constexpr std::array kHttpKeys = {
    bound<&Http::via>({.name = "via",
                       .doc =
                           "The pseudonym in `Via`, by which the proxy also notices a request "
                           "that went in a circle. Six digits, new at every start, are added, so "
                           "that two proxies in a row may have the same.",
                       .accepted = "letters, digits and -._",
                       .item_check = check_token}),
    bound<&Http::error_pages>(
        {.name = "error_pages",
         .doc =
             "A folder with pages for what the proxy answers of its own: `404.html`, `503.json`, "
             "or for all others of a class `4xx.html`, `5xx.txt`, 256 KiB each at most. The "
             "ending says their type: html, htm, txt, json, xml, svg. They are read at start and "
             "at a reload, and never stored by anybody. Empty: one line of text.",
         .accepted = "a folder or \"\"",
         .item_check = check_file_name}),
};

}  // namespace

std::span<const Key> origin_keys() { return kOriginKeys; }
std::span<const Key> forward_keys() { return kForwardKeys; }
std::span<const Key> upstream_keys() { return kUpstreamKeys; }
std::span<const Key> http_keys() { return kHttpKeys; }

}  // namespace encore::config
