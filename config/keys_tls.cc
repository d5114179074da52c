// Keys of [[listen]] for TLS to clients.
#include <array>

#include "config/keys.h"
#include "config/tls_texts.h"

namespace encore::config {
namespace {

constexpr std::array<std::string_view, 2> kUnknownNames = {"default", "refuse"};
constexpr std::array<std::string_view, 2> kVersions = {"1.2", "1.3"};
constexpr std::array<std::string_view, 3> kVerify = {"off", "request", "require"};

constexpr std::array kTlsKeys = {
    bound<&Listen::tls>(
        {.name = "tls",
         .kind = Kind::kTextList,
         .doc = "Clients speak TLS; each pair is a certificate (PEM, leaf first, each followed by "
                "its issuer), its key (PEM, without a password, not readable for others than its "
                "owner and group) and, if wanted, a stapled `ocsp` response (DER). The name that a "
                "client asks for chooses among them: the exact one, then `*.` for one label; who "
                "asks for none gets the first. Of one name there may be an ECDSA and an RSA "
                "certificate. Read again at a reload; [TLS.md](TLS.md).",
         .range = {.min = 0, .max = 1024},
         .tables = true,
         .accepted = "tables [{certificate = \"FILE\", key = \"FILE\", ocsp = \"FILE\"}], the last "
                     "key as needed",
         .item_check = check_parsed<TlsPairText>}),
    bound<&Listen::tls_unknown_name>(
        {.name = "tls_unknown_name",
         .kind = Kind::kChoice,
         .doc = "What a client gets that asks for a name of no certificate: the first pair "
                "(`default`) or an alert (`refuse`).",
         .choices = kUnknownNames}),
    bound<&Listen::tls_min_version>({.name = "tls_min_version",
                                     .kind = Kind::kChoice,
                                     .doc = "The oldest version of TLS that is spoken.",
                                     .choices = kVersions}),
    bound<&Listen::tls_alpn>(
        {.name = "tls_alpn",
         .kind = Kind::kTextList,
         .doc =
             "What is spoken above TLS, the dearest first; behind `http/1.1` comes `http/1.0`. A "
             "client that offers others alone is refused. Empty: what it offers is not looked "
             "at.",
         .range = {.min = 0, .max = 2},
         .accepted = "\"http/1.1\" or \"http/1.0\"",
         .item_check = check_alpn}),
    bound<&Listen::tls_ticket_file>(
        {.name = "tls_ticket_file",
         .doc = "Keys of session tickets that several machines share, so that a client may go on "
                "at another one: a line each of 160 hexadecimal digits (`openssl rand -hex 80`), "
                "of which the first encrypts and all decrypt, up to 16. Read again at a reload; "
                "nothing else changes them. Empty: keys of our own, a new one every 12 hours, over "
                "reloads too.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Listen::tls_client_verify>(
        {.name = "tls_client_verify",
         .kind = Kind::kChoice,
         .doc = "Whether clients are asked for a certificate. `request`: who has none comes in as "
                "well. One that is not signed by an authority of `tls_client_ca`, or not valid, is "
                "refused in either case.",
         .choices = kVerify}),
    bound<&Listen::tls_client_ca>({.name = "tls_client_ca",
                                   .doc = "The authorities of clients' certificates, PEM.",
                                   .accepted = "a file name or \"\"",
                                   .item_check = check_file_name}),
    bound<&Listen::tls_client_field>(
        {.name = "tls_client_field",
         .doc = "The request field in which origins are told the subject of the client's "
                "certificate (RFC 2253). Where any listener names one, a field of that name is "
                "taken out of the requests of all, and what an origin selects by it is not stored. "
                "Empty: they are not told.",
         .accepted = "the name of a field or \"\"",
         .item_check = check_client_field}),
    bound<&Listen::redirect_https>(
        {.name = "redirect_https",
         .kind = Kind::kBool,
         .doc = "Of a reverse listener without TLS: who asks by http is sent to the same URL by "
                "https (301, or 308 where the method is neither GET nor HEAD), but for whom a "
                "trusted proxy says that it has asked by https."}),
    bound<&Listen::redirect_https_port>({.name = "redirect_https_port",
                                         .kind = Kind::kInteger,
                                         .doc = "The port of these URLs.",
                                         .range = {.min = 1, .max = 65535}}),
};

}  // namespace

std::span<const Key> listen_tls_keys() { return kTlsKeys; }

}  // namespace encore::config
