// Keys of [[listen]], [[origin]], [forward], [upstream] and [http].
#include <array>

#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::array<std::string_view, 2> kModes = {"forward", "reverse"};
constexpr std::array<std::string_view, 2> kHostHeaders = {"preserve", "origin"};
constexpr std::array<std::string_view, 3> kPrivate = {"never", "loopback-clients", "always"};

constexpr std::array kListenKeys = {
    bound<&Listen::address>({.name = "address",
                             .doc = "Where clients connect: a numeric address and a port.",
                             .apply = Apply::kRestart,
                             .accepted = "\"127.0.0.1:3128\", \"[::1]:3128\" or \"*:3128\"",
                             .item_check = check_endpoint}),
    bound<&Listen::mode>({.name = "mode",
                          .kind = Kind::kChoice,
                          .doc = "`forward`: a proxy that clients are told to use (absolute-form "
                                 "and `CONNECT`). `reverse`: stands before the `[[origin]]`s.",
                          .apply = Apply::kRestart,
                          .choices = kModes}),
};

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
                             .doc = "The origin's servers, asked in turn. They are exempt from "
                                    "`forward.private_destinations`.",
                             .range = {.min = 1, .max = 256},
                             .accepted = "\"http://host:port\" or \"https://host:port\"",
                             .item_check = check_server_url}),
    bound<&Origin::host_header>({.name = "host_header",
                                 .kind = Kind::kChoice,
                                 .doc = "`Host` of what is sent to the origin: the client's "
                                        "(`preserve`) or the server's own name (`origin`).",
                                 .choices = kHostHeaders}),
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
};

constexpr std::array kForwardKeys = {
    bound<&Forward::allow_clients>({.name = "allow_clients",
                                    .kind = Kind::kTextList,
                                    .doc = "Who may use forward listeners; others get 403.",
                                    .range = {.min = 0, .max = 4096},
                                    .accepted = "addresses and blocks, as \"10.0.0.0/8\"",
                                    .item_check = check_cidr}),
    bound<&Forward::connect_ports>({.name = "connect_ports",
                                    .kind = Kind::kIntegerList,
                                    .doc = "Ports that `CONNECT` may reach; others get 403.",
                                    .range = {.min = 1, .max = 65535}}),
    bound<&Forward::private_destinations>(
        {.name = "private_destinations",
         .kind = Kind::kChoice,
         .doc = "Who may reach loopback, private and link-local addresses through a forward "
                "listener. It is the address connected to that counts, not the name. The proxy's "
                "own listeners are never reached.",
         .choices = kPrivate}),
};

constexpr std::array kUpstreamKeys = {
    bound<&Upstream::pool_per_server>({.name = "pool_per_server",
                                       .kind = Kind::kInteger,
                                       .doc = "Idle connections that a worker keeps to one server. "
                                              "0: none, every request connects.",
                                       .range = {.min = 0, .max = 65536}}),
    bound<&Upstream::retries>({.name = "retries",
                               .kind = Kind::kInteger,
                               .doc = "How often a request is sent again, on another connection or "
                                      "server, when it failed before an answer began and may "
                                      "safely be repeated (RFC 9110 9.2.2).",
                               .range = {.min = 0, .max = 16}}),
    bound<&Upstream::tls_verify>({.name = "tls_verify",
                                  .kind = Kind::kBool,
                                  .doc = "Whether certificates of https servers must be valid. Off "
                                         "only for tests; false here overrides `[[origin]]`."}),
    bound<&Upstream::tls_ca_file>({.name = "tls_ca_file",
                                   .doc = "Certificates (PEM) that may have signed those of origin "
                                          "servers. Empty: the system's.",
                                   .accepted = "a file name or \"\"",
                                   .item_check = check_file_name}),
    bound<&Upstream::nameservers>({.name = "nameservers",
                                   .kind = Kind::kTextList,
                                   .doc = "Name servers that are asked for the addresses of "
                                          "origins. Empty: those of `/etc/resolv.conf`.",
                                   .range = {.min = 0, .max = 16},
                                   .apply = Apply::kRestart,
                                   .accepted = "addresses, as \"192.0.2.53\", "
                                               "\"127.0.0.1:5353\" or \"[2001:db8::1]:53\"",
                                   .item_check = check_nameserver}),
};

constexpr std::array kHttpKeys = {
    bound<&Http::via>({.name = "via",
                       .doc =
                           "The pseudonym in `Via`, by which the proxy also notices a request "
                           "that went in a circle. Six digits, new at every start, are added, so "
                           "that two proxies in a row may have the same.",
                       .accepted = "letters, digits and -._",
                       .item_check = check_token}),
};

}  // namespace

std::span<const Key> listen_keys() { return kListenKeys; }
std::span<const Key> origin_keys() { return kOriginKeys; }
std::span<const Key> forward_keys() { return kForwardKeys; }
std::span<const Key> upstream_keys() { return kUpstreamKeys; }
std::span<const Key> http_keys() { return kHttpKeys; }

}  // namespace encore::config
