// Keys of [[listen]] for TLS to clients, and of [acme].
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
         .doc =
             "Certificates, which make the listener speak TLS: PEM, leaf first; key PEM without a "
             "password, mode 0600 or 0640; optional stapled `ocsp` response (DER). The requested "
             "name selects one: exact, then `*.` for one label, else the first. A name may have an "
             "ECDSA and an RSA certificate. Renewed files are taken without a reload "
             "(`tls_check_interval`). `missing = \"self-signed\"` serves a self-signed certificate "
             "until the files exist. See [TLS.md](TLS.md).",
         .range = {.min = 0, .max = 1024},
         .tables = true,
         .accepted = "tables [{certificate = \"FILE\", key = \"FILE\", ocsp = \"FILE\", missing = "
                     "\"self-signed\"}], the last two keys as needed",
         .item_check = check_parsed<TlsPairText>}),
    bound<&Listen::tls_check_interval>(
        {.name = "tls_check_interval",
         .kind = Kind::kDuration,
         .doc = "Time between two checks of the files in `tls`. Changed ones are used for new "
                "connections as soon as certificate and key load and match; until then the "
                "previous pair stays in use, and the log says why. 0: only a reload reads them.",
         .range = {.min = 0.1 * kSecond, .max = kDay},
         .zero_is_off = true}),
    bound<&Listen::tls_unknown_name>({.name = "tls_unknown_name",
                                      .kind = Kind::kChoice,
                                      .doc = "Response to a name without a certificate: the first "
                                             "pair (`default`) or an alert (`refuse`).",
                                      .choices = kUnknownNames}),
    bound<&Listen::tls_min_version>({.name = "tls_min_version",
                                     .kind = Kind::kChoice,
                                     .doc = "Oldest accepted version of TLS.",
                                     .choices = kVersions}),
    bound<&Listen::tls_alpn>({.name = "tls_alpn",
                              .kind = Kind::kTextList,
                              .doc = "Protocols offered by ALPN, preferred first. Clients that "
                                     "offer only others are refused. Empty: ALPN is ignored.",
                              .range = {.min = 0, .max = 2},
                              .accepted = "\"http/1.1\" or \"http/1.0\"",
                              .item_check = check_alpn}),
    bound<&Listen::tls_ticket_file>(
        {.name = "tls_ticket_file",
         .doc = "Keys of session tickets, shared by several machines: lines of 160 hexadecimal "
                "digits (`openssl rand -hex 80`), up to 16. The first encrypts, all decrypt. A "
                "reload reads them again. Empty: own keys, a new one every 12 hours.",
         .accepted = "a file name or \"\"",
         .item_check = check_file_name}),
    bound<&Listen::tls_client_verify>(
        {.name = "tls_client_verify",
         .kind = Kind::kChoice,
         .doc = "Client certificates: `request` also accepts clients without one. An invalid one, "
                "or one not signed by `tls_client_ca`, is always refused.",
         .choices = kVerify}),
    bound<&Listen::tls_client_ca>({.name = "tls_client_ca",
                                   .doc = "CA certificates (PEM) of client certificates.",
                                   .accepted = "a file name or \"\"",
                                   .item_check = check_file_name}),
    bound<&Listen::tls_client_field>(
        {.name = "tls_client_field",
         .doc = "Request field with the subject of the client's certificate (RFC 2253) for "
                "origins. It is removed from requests on all listeners, and responses that vary by "
                "it are not stored. Empty: none.",
         .accepted = "the name of a field or \"\"",
         .item_check = check_client_field}),
    bound<&Listen::redirect_https>(
        {.name = "redirect_https",
         .kind = Kind::kBool,
         .doc = "Redirect requests of a plain reverse listener to https (301; 308 unless GET or "
                "HEAD), unless a trusted proxy says that they came by https."}),
    bound<&Listen::redirect_https_port>({.name = "redirect_https_port",
                                         .kind = Kind::kInteger,
                                         .doc = "Port of these URLs.",
                                         .range = {.min = 1, .max = 65535}}),
};

constexpr std::array kAcmeKeys = {
    bound<&Acme::challenge_directory>(
        {.name = "challenge_directory",
         .doc =
             "Directory in which an ACME client (certbot, lego, dehydrated) writes its http-01 "
             "challenges. Plain listeners respond to GET and HEAD of "
             "`/.well-known/acme-challenge/TOKEN` from it, before rules, redirects, access lists "
             "and logins; forward listeners only if the request is for the proxy itself. Other "
             "files than key authorizations, links and files over 4 KiB are 404. Empty: off. See "
             "[TLS.md](TLS.md#get-certificates-by-acme).",
         .accepted = "a directory or \"\"",
         .item_check = check_file_name}),
};

}  // namespace

std::span<const Key> acme_keys() { return kAcmeKeys; }
std::span<const Key> listen_tls_keys() { return kTlsKeys; }

}  // namespace encore::config
