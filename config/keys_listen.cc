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

constexpr std::string_view kHostGlobs = "hosts without a port, as \"*.example.com\"";
constexpr std::string_view kPathGlobs = "paths, as \"/public/*\" or \"*.css\"";

constexpr std::array kListenKeys = {
    bound<&Listen::address>(
        {.name = "address",
         .doc = "Address and port, or a Unix socket, whose clients count as 127.0.0.1. A reload "
                "opens new listeners first, and closes removed ones after their requests.",
         .accepted = "\"127.0.0.1:3128\", \"[::1]:3128\", \"*:3128\" or "
                     "\"unix:/run/encore.sock\"",
         .item_check = check_parsed<EndpointText>}),
    bound<&Listen::mode>(
        {.name = "mode",
         .kind = Kind::kChoice,
         .doc = "`forward`: a proxy that clients are configured to use (absolute-form, `CONNECT`). "
                "`reverse`: in front of the `[[origin]]`s.",
         .choices = kModes}),
    bound<&Listen::socket_mode>(
        {.name = "socket_mode",
         .doc = "Permissions of a Unix socket. Users who may write to it may connect.",
         .accepted = "an octal number, as \"0660\"",
         .item_check = check_parsed<SocketModeText>}),
    bound<&Listen::trusted_proxies>(
        {.name = "trusted_proxies",
         .kind = Kind::kTextList,
         .doc = "Your own proxies in front of this listener. The client is the first address from "
                "the right in `trusted_field` (or the PROXY header) that is not listed here. "
                "Others' fields are ignored.",
         .range = kListed,
         .accepted = kBlocks,
         .item_check = check_parsed<CidrText>}),
    bound<&Listen::trusted_field>(
        {.name = "trusted_field",
         .kind = Kind::kChoice,
         .doc =
             "Field in which they name their clients. Choose the one that they write themselves.",
         .choices = kTrustedFields}),
    bound<&Listen::proxy_protocol>(
        {.name = "proxy_protocol",
         .kind = Kind::kBool,
         .doc = "Require a PROXY header (version 1 or 2) on each connection, from "
                "`trusted_proxies` only. If that is empty, every client may send one: keep clients "
                "away from this port."}),
    bound<&Listen::http2>(
        {.name = "http2",
         .kind = Kind::kBool,
         .doc = "Accept HTTP/2: by ALPN before `tls_alpn` over TLS, with prior knowledge without. "
                "`Upgrade: h2c` is ignored. Applies to new connections."}),
    bound<&Listen::forwarded>(
        {.name = "forwarded",
         .kind = Kind::kChoice,
         .doc = "Fields about the client for origins, in place of the client's own: `x-forwarded` "
                "(`X-Forwarded-For`, `-Proto`, `-Host`), `forwarded` (RFC 7239), `both` or `off`. "
                "`auto`: `both` for reverse listeners, `off` for forward ones.",
         .choices = kForwardedFields}),
    bound<&Listen::via>(
        {.name = "via",
         .kind = Kind::kBool,
         .doc = "Add `Via` to requests and responses. Without it, loops end at a limit only."}),
    bound<&Listen::purge_clients>(
        {.name = "purge_clients",
         .kind = Kind::kTextList,
         .doc = "Clients that may purge with `PURGE`, `PURGEKEYS`, `PURGETAGS` and `BAN` "
                "([how](PURGE.md)); others get 403. Empty: none.",
         .range = kListed,
         .accepted = kBlocks,
         .item_check = check_parsed<CidrText>}),
    bound<&Listen::purge_to_origin>(
        {.name = "purge_to_origin",
         .kind = Kind::kBool,
         .doc = "If `purge_clients` is empty, pass these methods to an origin that is a cache "
                "itself. A success invalidates the URL here."}),
    bound<&Listen::cache_status>(
        {.name = "cache_status", .kind = Kind::kBool, .doc = "Add `Cache-Status` to responses."}),
    bound<&Listen::allow_clients>({.name = "allow_clients",
                                   .kind = Kind::kTextList,
                                   .doc = "Allowed clients; others get 403. Empty: all. Forward "
                                          "listeners also check `forward.allow_clients`.",
                                   .range = kListed,
                                   .accepted = kBlocks,
                                   .item_check = check_parsed<CidrText>}),
    bound<&Listen::deny_clients>({.name = "deny_clients",
                                  .kind = Kind::kTextList,
                                  .doc = "Denied clients; overrides `allow_clients`.",
                                  .range = kListed,
                                  .accepted = kBlocks,
                                  .item_check = check_parsed<CidrText>}),
    bound<&Listen::allow_hosts>(
        {.name = "allow_hosts",
         .kind = Kind::kTextList,
         .doc = "Allowed hosts; others get 403. `*` matches any characters. Empty: all.",
         .range = kListed,
         .accepted = kHostGlobs,
         .item_check = check_host_glob}),
    bound<&Listen::deny_hosts>({.name = "deny_hosts",
                                .kind = Kind::kTextList,
                                .doc = "Denied hosts, by name; overrides `allow_hosts`.",
                                .range = kListed,
                                .accepted = kHostGlobs,
                                .item_check = check_host_glob}),
    bound<&Listen::allow_paths>(
        {.name = "allow_paths",
         .kind = Kind::kTextList,
         .doc = "Allowed paths, normalised and without query; others get 403. Empty: all. "
                "`CONNECT` has no path, and is refused if this is set.",
         .range = kListed,
         .accepted = kPathGlobs,
         .item_check = check_path_glob}),
    bound<&Listen::deny_paths>({.name = "deny_paths",
                                .kind = Kind::kTextList,
                                .doc = "Denied paths, in every spelling (`%2F`, `//`); overrides "
                                       "`allow_paths`. Requests inside a tunnel are not checked.",
                                .range = kListed,
                                .accepted = kPathGlobs,
                                .item_check = check_path_glob}),
    bound<&Listen::allow_methods>(
        {.name = "allow_methods",
         .kind = Kind::kTextList,
         .doc = "Allowed methods, case-sensitive; others get 403. Empty: all.",
         .range = {.min = 0, .max = 64},
         .accepted = "methods, as \"GET\"",
         .item_check = check_method}),
    bound<&Listen::allow_ports>(
        {.name = "allow_ports",
         .kind = Kind::kTextList,
         .doc = "Allowed ports of requests and `CONNECT`; others get 403. Empty: those of "
                "`forward.safe_ports` and `forward.connect_ports`.",
         .range = {.min = 0, .max = 256},
         .accepted = "ports, as \"80\" or \"1025-65535\"",
         .item_check = check_parsed<PortRangeText>}),
    bound<&Listen::users_file>(
        {.name = "users_file",
         .doc = "Users for `Basic` logins ([how](ACCESS.md#require-a-login)): lines `NAME:HASH`, "
                "as of `htpasswd -B` (bcrypt, yescrypt or SHA-512). Others get 407 (forward) or "
                "401 (reverse). A reload reads it again. Empty: no login.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Listen::users_helper>(
        {.name = "users_helper",
         .kind = Kind::kTextList,
         .doc =
             "A program, with its arguments, that checks `Basic` logins in place of "
             "`users_file`: one of Squid's basic authentication helpers, as for LDAP or PAM. See "
             "[ACCESS.md](ACCESS.md#ask-a-program).",
         .range = {.min = 0, .max = 64},
         .accepted = "an absolute path and its arguments"}),
    bound<&Listen::tokens_file>(
        {.name = "tokens_file",
         .doc = "Tokens for `Bearer` logins: lines `NAME:SHA256`, the hexadecimal hash of a random "
                "token of at least 128 bits. With `users_file`, either suffices.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Listen::realm>({.name = "realm",
                           .doc = "Realm of login requests.",
                           .accepted = "a text without quotation marks",
                           .item_check = check_realm}),
};

constexpr std::array kLimitKeys = {
    bound<&RateLimit::rate>(
        {.name = "rate",
         .kind = Kind::kReal,
         .doc = "Requests per second in the long run; more get 429 with `Retry-After`.",
         .range = {.min = 0.001, .max = 1e6}}),
    bound<&RateLimit::burst>({.name = "burst",
                              .kind = Kind::kInteger,
                              .doc = "Requests at the same time.",
                              .range = {.min = 1, .max = 1e6}}),
    bound<&RateLimit::field>({.name = "field",
                              .doc = "Count by the value of this field; requests without it do not "
                                     "count, and each line counts. Empty: by client address.",
                              .accepted = "the name of a field or \"\"",
                              .item_check = check_lower_field_or_empty}),
    bound<&RateLimit::prefix_v4>({.name = "prefix_v4",
                                  .kind = Kind::kInteger,
                                  .doc = "Bits of an IPv4 address that identify a client.",
                                  .range = {.min = 8, .max = 32}}),
    bound<&RateLimit::prefix_v6>({.name = "prefix_v6",
                                  .kind = Kind::kInteger,
                                  .doc = "Bits of an IPv6 address that identify a client.",
                                  .range = {.min = 16, .max = 128}}),
    bound<&RateLimit::hosts>({.name = "hosts",
                              .kind = Kind::kTextList,
                              .doc = "Hosts of counted requests. Empty: all.",
                              .range = kListed,
                              .accepted = kHostGlobs,
                              .item_check = check_host_glob}),
    bound<&RateLimit::paths>({.name = "paths",
                              .kind = Kind::kTextList,
                              .doc = "Paths of counted requests. Empty: all.",
                              .range = kListed,
                              .accepted = kPathGlobs,
                              .item_check = check_path_glob}),
    bound<&RateLimit::listener>({.name = "listener",
                                 .kind = Kind::kTextList,
                                 .doc = "`address` of the listeners. Empty: all, counted together.",
                                 .range = {.min = 0, .max = 256},
                                 .one_will_do = true,
                                 .accepted = "addresses of `[[listen]]`s",
                                 .item_check = check_file_name}),
    bound<&RateLimit::entries>({.name = "entries",
                                .kind = Kind::kInteger,
                                .doc = "Clients or values remembered, 16 bytes each. Beyond it, "
                                       "the fullest buckets leave first.",
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
