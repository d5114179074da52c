// Keys of [intercept].
#include <array>

#include "config/keys.h"

namespace encore::config {
namespace {

constexpr std::array<std::string_view, 2> kOnReject = {"splice", "fail"};

constexpr std::array kInterceptKeys = {
    bound<&Intercept::ca_certificate>(
        {.name = "ca_certificate",
         .doc = "The certificate (PEM) of an authority of one's own that clients have been told "
                "to trust, as `encore ca create` makes it. Forward listeners that are asked for "
                "`/ca.crt` themselves give it to whoever may use them, where `hosts` names any. "
                "Empty: nothing is decrypted.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Intercept::ca_key>(
        {.name = "ca_key",
         .doc = "Its key (PEM): a file of the user that encore runs as, or of root, which nobody "
                "else may read but its group. Both files are read again at a reload.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Intercept::hosts>(
        {.name = "hosts",
         .kind = Kind::kTextList,
         .doc = "Hosts whose `CONNECT`s are decrypted, so that what they answer is cached; of all "
                "others nothing is. The authority must be allowed to sign for each.",
         .range = {.min = 0, .max = 4096},
         .accepted = "names, as \"packages.example\" or \"*.packages.example\", and with "
                     "intercept.any_host \"*\"",
         .item_check = check_intercepted_host}),
    bound<&Intercept::never>({.name = "never",
                              .kind = Kind::kTextList,
                              .doc = "Hosts that are not, whatever `hosts` says.",
                              .range = {.min = 0, .max = 4096},
                              .accepted = "names, as \"bank.example\" or \"*.bank.example\"",
                              .item_check = check_intercepted_host}),
    bound<&Intercept::any_host>(
        {.name = "any_host",
         .kind = Kind::kBool,
         .doc = "Whether `hosts` may be all of them (`\"*\"`): then everything that clients send "
                "and get by https is decrypted, but for what `never` names."}),
    bound<&Intercept::ports>({.name = "ports",
                              .kind = Kind::kIntegerList,
                              .doc = "Ports of `CONNECT` at which this is done. They must be in "
                                     "`forward.connect_ports`, too.",
                              .range = {.min = 1, .max = 65535}}),
    bound<&Intercept::on_client_reject>(
        {.name = "on_client_reject",
         .kind = Kind::kChoice,
         .doc = "What becomes of a client that does not take our certificate for a host: that host "
                "is no longer decrypted for it (`splice`), or its connections go on to fail "
                "(`fail`).",
         .choices = kOnReject}),
    bound<&Intercept::reject_after>(
        {.name = "reject_after",
         .kind = Kind::kInteger,
         .doc = "How many refusals of a client address, or IPv6 network of 64 bits, for one host, "
                "each within `reject_memory` of the last, it takes until that host goes through "
                "unread for it.",
         .range = {.min = 1, .max = 100}}),
    bound<&Intercept::reject_first>(
        {.name = "reject_first",
         .kind = Kind::kDuration,
         .doc = "For how long it does so the first time. Behind that time it is decrypted again; "
                "the next refusal begins a time twice as long as the last.",
         .range = {.min = kSecond, .max = 30 * kDay}}),
    bound<&Intercept::reject_memory>(
        {.name = "reject_memory",
         .kind = Kind::kDuration,
         .doc = "The longest of these times, and how long a refusal is remembered when such a time "
                "has ended. 65,536 pairs of a client and a host are remembered, at most. A reload "
                "that makes it shorter forgets "
                "them all. As long is remembered which pairs have asked for something inside, by "
                "which refusals are told from browsers that leave what they opened in advance.",
         .range = {.min = kSecond, .max = 30 * kDay}}),
    bound<&Intercept::hello_wait>(
        {.name = "hello_wait",
         .kind = Kind::kDuration,
         .doc = "How long a client may say nothing behind its `CONNECT` before it is connected as "
                "it would be without us: it speaks another protocol than TLS, in which servers "
                "begin.",
         .range = {.min = 1e8, .max = 60 * kSecond}}),
    bound<&Intercept::http2>(
        {.name = "http2",
         .kind = Kind::kBool,
         .doc = "Offer HTTP/2 to clients inside of a `CONNECT`, if `http2` of the listener is on. "
                "Browsers close a second connection that they do not need, which then counts as a "
                "refusal of the certificate."}),
};

}  // namespace

std::span<const Key> intercept_keys() { return kInterceptKeys; }

}  // namespace encore::config
