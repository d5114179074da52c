// Keys of [[listen]] and [[limit]].
#include <array>
#include <vector>

#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::array<std::string_view, 2> kModes = {"forward", "reverse"};
constexpr std::array<std::string_view, 2> kTrustedFields = {"x-forwarded-for", "forwarded"};
constexpr std::array<std::string_view, 5> kForwardedFields = {"auto", "off", "x-forwarded",
                                                              "forwarded", "both"};
constexpr Range kListed = {.min = 0, .max = 4096};
constexpr std::string_view kBlocks = "addresses and blocks, as \"10.0.0.0/8\"";

constexpr std::string_view kHostGlobs =
    "hosts without a port, as \"www.example.com\" or \"*.example.com\"";
constexpr std::string_view kPathGlobs = "paths, as \"/public/*\" or \"*.css\"";

constexpr std::array kListenKeys = {
    bound<&Listen::address>({.name = "address",
                             .doc = "Where clients connect: a numeric address and a port, or a "
                                    "Unix socket, whose clients count as 127.0.0.1. A reload "
                                    "keeps what stays, opens what is new before it changes "
                                    "anything, and closes what is gone behind the requests that "
                                    "are under way.",
                             .accepted = "\"127.0.0.1:3128\", \"[::1]:3128\", \"*:3128\" or "
                                         "\"unix:/run/encore.sock\"",
                             .item_check = check_parsed<EndpointText>}),
    bound<&Listen::mode>({.name = "mode",
                          .kind = Kind::kChoice,
                          .doc = "`forward`: a proxy that clients are told to use (absolute-form "
                                 "and `CONNECT`). `reverse`: stands before the `[[origin]]`s.",
                          .choices = kModes}),
    bound<&Listen::socket_mode>(
        {.name = "socket_mode",
         .doc = "The permissions of a Unix socket's file: who may write to it may connect.",
         .accepted = "an octal number, as \"0660\"",
         .item_check = check_parsed<SocketModeText>}),
    bound<&Listen::trusted_proxies>(
        {.name = "trusted_proxies",
         .kind = Kind::kTextList,
         .doc = "Proxies of one's own in front of this listener. What they say of their clients "
                "(`trusted_field`, `X-Forwarded-Proto`, a PROXY header) is believed; of nobody "
                "else it is. The client is the first address, from the right, that is none of "
                "them. A loopback address that another machine names is not believed.",
         .range = kListed,
         .accepted = kBlocks,
         .item_check = check_parsed<CidrText>}),
    bound<&Listen::trusted_field>(
        {.name = "trusted_field",
         .kind = Kind::kChoice,
         .doc = "The field in which the trusted proxies name their clients. Only the one that they "
                "write themselves: most pass the other one on as a client has sent it.",
         .choices = kTrustedFields}),
    bound<&Listen::proxy_protocol>(
        {.name = "proxy_protocol",
         .kind = Kind::kBool,
         .doc = "Each connection begins with a PROXY header, version 1 or 2, which says who the "
                "client is; one that does not is closed. Accepted of `trusted_proxies` only, or, "
                "where there are none, of everybody who can connect: then the listener must be "
                "out of clients' reach."}),
    bound<&Listen::http2>(
        {.name = "http2",
         .kind = Kind::kBool,
         .doc = "Whether clients may speak HTTP/2: over TLS `h2` is offered in front of "
                "`tls_alpn`, without TLS a connection may begin with its preface (prior "
                "knowledge). `Upgrade: h2c` is not followed: such a request is answered over "
                "HTTP/1.1. A reload concerns new connections."}),
    bound<&Listen::forwarded>(
        {.name = "forwarded",
         .kind = Kind::kChoice,
         .doc = "What origins are told of the client: `x-forwarded` (`X-Forwarded-For`, `-Proto`, "
                "`-Host`), `forwarded` (RFC 7239), `both`, or nothing (`off`). `auto`: both behind "
                "a reverse listener, nothing behind a forward one. It is written of what is known; "
                "what a client says itself never goes on.",
         .choices = kForwardedFields}),
    bound<&Listen::via>(
        {.name = "via",
         .kind = Kind::kBool,
         .doc = "Whether requests and responses carry our `Via`. Without it a request that goes in "
                "a circle is not noticed by it, and goes round until a limit ends it."}),
    bound<&Listen::purge_clients>(
        {.name = "purge_clients",
         .kind = Kind::kTextList,
         .doc = "Clients that may purge the cache with the methods `PURGE`, `PURGEKEYS`, "
                "`PURGETAGS` and `BAN` ([how](CACHING.md)). Others get 403. Empty: nobody may.",
         .range = kListed,
         .accepted = kBlocks,
         .item_check = check_parsed<CidrText>}),
    bound<&Listen::purge_to_origin>(
        {.name = "purge_to_origin",
         .kind = Kind::kBool,
         .doc =
             "Pass these methods on to the origin if `purge_clients` is empty, for an origin "
             "that is a cache itself. Here, a success invalidates the URL alone, as of any unsafe "
             "method."}),
    bound<&Listen::cache_status>({.name = "cache_status",
                                  .kind = Kind::kBool,
                                  .doc = "Whether responses carry our `Cache-Status`."}),
    bound<&Listen::allow_clients>(
        {.name = "allow_clients",
         .kind = Kind::kTextList,
         .doc = "Who may use this listener; others get 403. Empty: everybody. A forward listener "
                "asks `forward.allow_clients` as well.",
         .range = kListed,
         .accepted = kBlocks,
         .item_check = check_parsed<CidrText>}),
    bound<&Listen::deny_clients>({.name = "deny_clients",
                                  .kind = Kind::kTextList,
                                  .doc = "Who may not, whatever else is allowed.",
                                  .range = kListed,
                                  .accepted = kBlocks,
                                  .item_check = check_parsed<CidrText>}),
    bound<&Listen::allow_hosts>(
        {.name = "allow_hosts",
         .kind = Kind::kTextList,
         .doc = "Hosts that may be asked for, without a port; others get 403. `*` stands for any "
                "run of characters. Empty: all.",
         .range = kListed,
         .accepted = kHostGlobs,
         .item_check = check_host_glob}),
    bound<&Listen::deny_hosts>({.name = "deny_hosts",
                                .kind = Kind::kTextList,
                                .doc = "Hosts that may not, whatever else is allowed. It is the "
                                       "name that counts, not the address behind it.",
                                .range = kListed,
                                .accepted = kHostGlobs,
                                .item_check = check_host_glob}),
    bound<&Listen::allow_paths>(
        {.name = "allow_paths",
         .kind = Kind::kTextList,
         .doc = "Paths that may be asked for, as cache and origin see them: without the query, dot "
                "segments and needless escapes gone; others get 403. Empty: all. `CONNECT` has "
                "none, and is refused where there are such.",
         .range = kListed,
         .accepted = kPathGlobs,
         .item_check = check_path_glob}),
    bound<&Listen::deny_paths>(
        {.name = "deny_paths",
         .kind = Kind::kTextList,
         .doc = "Paths that may not, whatever else is allowed, in whichever way they are written "
                "(`%2F`, `//`). What goes through a `CONNECT` is not seen.",
         .range = kListed,
         .accepted = kPathGlobs,
         .item_check = check_path_glob}),
    bound<&Listen::allow_methods>({.name = "allow_methods",
                                   .kind = Kind::kTextList,
                                   .doc = "Methods that may be used, in capitals as they are sent; "
                                          "others get 403. Empty: all.",
                                   .range = {.min = 0, .max = 64},
                                   .accepted = "methods, as \"GET\"",
                                   .item_check = check_method}),
    bound<&Listen::allow_ports>(
        {.name = "allow_ports",
         .kind = Kind::kTextList,
         .doc = "Ports that requests may name, `CONNECT` too; others get 403. Empty: all that "
                "`forward.safe_ports` and `forward.connect_ports` allow.",
         .range = {.min = 0, .max = 256},
         .accepted = "ports, as \"80\" or \"1025-65535\"",
         .item_check = check_parsed<PortRangeText>}),
    bound<&Listen::users_file>(
        {.name = "users_file",
         .doc = "Who may use this listener, by `Basic`: lines `NAME:HASH`, as `htpasswd -B` "
                "writes them (bcrypt, yescrypt or SHA-512). It is read again at a reload, and "
                "refused where its group or others can write it. Others "
                "get 407 of a forward listener, 401 of a reverse one. Empty: nobody is asked.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Listen::tokens_file>(
        {.name = "tokens_file",
         .doc = "The same by `Bearer`: lines `NAME:SHA256` with the hash of a random token of 128 "
                "bits or more in hexadecimal digits. With `users_file` either will do.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Listen::realm>({.name = "realm",
                           .doc = "What clients are told they log in to.",
                           .accepted = "a text without quotation marks",
                           .item_check = check_realm}),
};

constexpr std::array kLimitKeys = {
    bound<&RateLimit::rate>(
        {.name = "rate",
         .kind = Kind::kReal,
         .doc = "Requests a second that may come in the long run; more get 429 with "
                "`Retry-After`.",
         .range = {.min = 0.001, .max = 1e6}}),
    bound<&RateLimit::burst>({.name = "burst",
                              .kind = Kind::kInteger,
                              .doc = "Requests that may come at once.",
                              .range = {.min = 1, .max = 1e6}}),
    bound<&RateLimit::field>(
        {.name = "field",
         .doc = "Requests with the same value of this field are counted together, and those "
                "without it are not counted. A request with several lines of it counts for each "
                "of their values. Empty: those of one client address.",
         .accepted = "the name of a field or \"\"",
         .item_check = check_lower_field_or_empty}),
    bound<&RateLimit::prefix_v4>({.name = "prefix_v4",
                                  .kind = Kind::kInteger,
                                  .doc = "Bits of an IPv4 address that make one client.",
                                  .range = {.min = 8, .max = 32}}),
    bound<&RateLimit::prefix_v6>({.name = "prefix_v6",
                                  .kind = Kind::kInteger,
                                  .doc = "Bits of an IPv6 address that make one client.",
                                  .range = {.min = 16, .max = 128}}),
    bound<&RateLimit::hosts>({.name = "hosts",
                              .kind = Kind::kTextList,
                              .doc = "Only requests for these hosts. Empty: for all.",
                              .range = kListed,
                              .accepted = kHostGlobs,
                              .item_check = check_host_glob}),
    bound<&RateLimit::paths>({.name = "paths",
                              .kind = Kind::kTextList,
                              .doc = "Only requests for these paths. Empty: for all.",
                              .range = kListed,
                              .accepted = kPathGlobs,
                              .item_check = check_path_glob}),
    bound<&RateLimit::listener>({.name = "listener",
                                 .kind = Kind::kTextList,
                                 .doc = "Only requests to these listeners, by their `address` in "
                                        "`[[listen]]`. Empty: to all, counted together.",
                                 .range = {.min = 0, .max = 256},
                                 .one_will_do = true,
                                 .accepted = "addresses of `[[listen]]`s",
                                 .item_check = check_file_name}),
    bound<&RateLimit::entries>(
        {.name = "entries",
         .kind = Kind::kInteger,
         .doc = "Clients or values that are remembered at a time, at 16 bytes each; beyond it "
                "those leave first whose buckets are fullest. A power of two.",
         .range = {.min = 1024, .max = 1 << 24},
         .power_of_two = true}),
};

}  // namespace

std::span<const Key> listen_keys() {
  static const std::vector<Key> kAll = [] {
    std::vector<Key> keys(kListenKeys.begin(), kListenKeys.end());
    keys.insert(keys.end(), listen_tls_keys().begin(), listen_tls_keys().end());
    return keys;
  }();
  return kAll;
}
std::span<const Key> limit_keys() { return kLimitKeys; }

}  // namespace encore::config
