// Keys of [intercept].
#include <array>

#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::array<std::string_view, 2> kOnReject = {"splice", "fail"};

constexpr std::array kInterceptKeys = {
    bound<&Intercept::ca_certificate>(
        {.name = "ca_certificate",
         .doc = "Certificate (PEM) of your CA, as `encore ca create` makes it. Forward listeners "
                "serve it as `/ca.crt` while `hosts` is not empty. Empty: no interception.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Intercept::ca_key>({.name = "ca_key",
                               .doc = "Key (PEM) of the CA, owned by root or encore's user, mode "
                                      "0600 or 0640. A reload reads both files again.",
                               .accepted = "a file name or \"\"",
                               .item_check = check_file_name}),
    bound<&Intercept::hosts>(
        {.name = "hosts",
         .kind = Kind::kTextList,
         .doc = "Hosts whose `CONNECT`s are decrypted and cached. The CA must be allowed to sign "
                "for each.",
         .range = {.min = 0, .max = 4096},
         .accepted = "names, as \"packages.example\" or \"*.packages.example\", and with "
                     "intercept.any_host \"*\"",
         .item_check = check_intercepted_host}),
    bound<&Intercept::never>({.name = "never",
                              .kind = Kind::kTextList,
                              .doc = "Hosts that are never decrypted; overrides `hosts`.",
                              .range = {.min = 0, .max = 4096},
                              .accepted = "names, as \"bank.example\" or \"*.bank.example\"",
                              .item_check = check_intercepted_host}),
    bound<&Intercept::any_host>(
        {.name = "any_host",
         .kind = Kind::kBool,
         .doc = "Allow `\"*\"` in `hosts`: decrypts everything except `never`."}),
    bound<&Intercept::ports>(
        {.name = "ports",
         .kind = Kind::kIntegerList,
         .doc = "Ports of `CONNECT` that are decrypted; also needed in `forward.connect_ports`.",
         .range = {.min = 1, .max = 65535}}),
    bound<&Intercept::on_client_reject>(
        {.name = "on_client_reject",
         .kind = Kind::kChoice,
         .doc = "For a client that refuses the certificate of a host: pass that host unread "
                "(`splice`), or let its connections fail (`fail`).",
         .choices = kOnReject}),
    bound<&Intercept::reject_after>(
        {.name = "reject_after",
         .kind = Kind::kInteger,
         .doc = "Refusals of a host by one client (address or IPv6 /64), each within "
                "`reject_memory` of the last, until the host passes unread.",
         .range = {.min = 1, .max = 100}}),
    bound<&Intercept::reject_first>(
        {.name = "reject_first",
         .kind = Kind::kDuration,
         .doc = "First time that it passes unread. Each further refusal doubles it.",
         .range = {.min = kSecond, .max = 30 * kDay}}),
    bound<&Intercept::reject_memory>(
        {.name = "reject_memory",
         .kind = Kind::kDuration,
         .doc = "Longest of these times, and how long refusals and successes are remembered. At "
                "most 65,536 pairs of client and host. A reload with a shorter time clears all.",
         .range = {.min = kSecond, .max = 30 * kDay}}),
    bound<&Intercept::hello_wait>(
        {.name = "hello_wait",
         .kind = Kind::kDuration,
         .doc = "How long a client may be silent after `CONNECT` before it is connected through, "
                "because its protocol lets the server speak first.",
         .range = {.min = 1e8, .max = 60 * kSecond}}),
    bound<&Intercept::http2>(
        {.name = "http2",
         .kind = Kind::kBool,
         .doc = "Offer HTTP/2 inside a `CONNECT`, if the listener's `http2` is on. Browsers close "
                "unneeded second connections, which then count as refusals."}),
};

}  // namespace

std::span<const Key> intercept_keys() { return kInterceptKeys; }

}  // namespace encore::config
