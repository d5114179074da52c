#include "tests/fuzz/proxy/tls_ends.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace encore::proxyfuzz {
namespace {

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "TLS of the world: %s\n", what);
  std::exit(2);
}

EVP_PKEY* make_key(Random& random) {
  EVP_PKEY* const key = random.percent(50) ? EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")
                                           : EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
  check(key != nullptr, "no key");
  return key;
}

// Its own authority, good whatever the clock shows.
X509* make_certificate(EVP_PKEY* key) {
  X509* const made = X509_new();
  check(made != nullptr && X509_set_version(made, X509_VERSION_3) == 1 &&
            ASN1_INTEGER_set(X509_get_serialNumber(made), 1) == 1 &&
            ASN1_TIME_set_string_X509(X509_getm_notBefore(made), "20000101000000Z") == 1 &&
            ASN1_TIME_set_string_X509(X509_getm_notAfter(made), "20491231235959Z") == 1 &&
            X509_set_pubkey(made, key) == 1,
        "no certificate");
  X509_NAME* const name = X509_get_subject_name(made);
  const auto* const text = reinterpret_cast<const unsigned char*>("the world of the fuzzer");
  check(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0) == 1 &&
            X509_set_issuer_name(made, name) == 1,
        "no name");
  X509_EXTENSION* const names =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name,
                          "IP:127.0.0.1,DNS:localhost,DNS:plain.test,DNS:many.test,DNS:slow.test");
  check(names != nullptr && X509_add_ext(made, names, -1) == 1, "no names of hosts");
  X509_EXTENSION_free(names);
  const EVP_MD* const digest =
      EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? nullptr : EVP_sha256();
  check(X509_sign(made, key, digest) != 0, "no signature");
  return made;
}

void limit_version(SSL* ssl, Random& random) {
  if (random.percent(25)) SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
}

}  // namespace

void FreeSsl::operator()(SSL* ssl) const noexcept { SSL_free(ssl); }

TlsEnds::TlsEnds(Random random)
    : key_(make_key(random)),
      certificate_(make_certificate(key_)),
      client_(SSL_CTX_new(TLS_client_method())),
      server_(SSL_CTX_new(TLS_server_method())) {
  check(client_ != nullptr && server_ != nullptr, "no context");
  X509_STORE_add_cert(SSL_CTX_get_cert_store(client_), certificate_);
  SSL_CTX_set_verify(client_, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_app_data(client_, this);
  SSL_CTX_set_session_cache_mode(client_, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(client_, &TlsEnds::keep_session);
  check(SSL_CTX_use_cert_and_key(server_, certificate_, key_, nullptr, 1) == 1, "no server");
}

TlsEnds::~TlsEnds() {
  for (std::FILE* file : in_memory_) std::fclose(file);
  SSL_SESSION_free(session_);
  SSL_CTX_free(client_);
  SSL_CTX_free(server_);
  X509_free(certificate_);
  EVP_PKEY_free(key_);
}

void TlsEnds::write(std::FILE* file, bool is_key) const {
  check(file != nullptr, "no file for a certificate");
  const int written = is_key
                          ? PEM_write_PrivateKey(file, key_, nullptr, nullptr, 0, nullptr, nullptr)
                          : PEM_write_X509(file, certificate_);
  // A key that others may read is refused.
  check(written == 1 && std::fflush(file) == 0 && ::fchmod(::fileno(file), 0600) == 0,
        "a certificate cannot be written");
}

void TlsEnds::write_files(const std::string& directory) {
  certificate_file_ = directory + "/certificate.pem";
  key_file_ = directory + "/key.pem";
  for (const std::string* path : {&certificate_file_, &key_file_}) {
    std::FILE* const file = std::fopen(path->c_str(), "w");
    write(file, path == &key_file_);
    std::fclose(file);
  }
}

void TlsEnds::keep_files_in_memory() {
  for (std::string* path : {&certificate_file_, &key_file_}) {
    in_memory_.push_back(::fdopen(::memfd_create("tls", MFD_CLOEXEC), "w"));
    write(in_memory_.back(), path == &key_file_);
    *path = "/proc/self/fd/" + std::to_string(::fileno(in_memory_.back()));
  }
}

std::string TlsEnds::listen_line() const {
  return "tls = [{certificate = \"" + certificate_file_ + "\", key = \"" + key_file_ + "\"}]\n";
}

// The reference is ours from now on.
int TlsEnds::keep_session(SSL* ssl, SSL_SESSION* session) {
  auto* const self = static_cast<TlsEnds*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  SSL_SESSION_free(self->session_);
  self->session_ = session;
  return 1;
}

void TlsEnds::choose_http2(Random random) {
  choices_ = random;
  SSL_CTX_set_alpn_select_cb(server_, &TlsEnds::choose_protocol, this);
}

int TlsEnds::choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                             const unsigned char* offered, unsigned offered_size, void* self) {
  static constexpr std::string_view kBoth = "\x02h2\x08http/1.1";
  Random& random = static_cast<TlsEnds*>(self)->choices_;
  const std::string_view known = random.percent(80) ? kBoth : kBoth.substr(3);
  unsigned char* chosen = nullptr;
  const int found =
      SSL_select_next_proto(&chosen, out_size, reinterpret_cast<const unsigned char*>(known.data()),
                            static_cast<unsigned>(known.size()), offered, offered_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

Ssl TlsEnds::make_client(Random& random, Offer offer) {
  Ssl ssl(SSL_new(client_));
  check(ssl != nullptr, "no connection of a client");
  limit_version(ssl.get(), random);
  const auto* const name = random.pick<const char*>({nullptr, "localhost", "nobody.test"});
  if (name != nullptr) SSL_set_tlsext_host_name(ssl.get(), name);
  auto offered = random.pick<std::string_view>({"", "\x08http/1.1", "\x02h3\x08http/1.1"});
  if (offer == Offer::kOther) offered = "\x02h3";
  if (offer == Offer::kHttp2) {
    // The proxy prefers it in any order (docs/CONFIG.md, `http2`).
    offered =
        random.pick<std::string_view>({"\x02h2", "\x02h2\x08http/1.1", "\x02h3\x08http/1.1\x02h2"});
  }
  if (!offered.empty()) {
    SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(offered.data()),
                        static_cast<unsigned>(offered.size()));
  }
  // Records of at most 512 bytes, to 4096; a session is taken up with those that it was begun with.
  std::uint8_t shorter = random.percent(20) ? static_cast<std::uint8_t>(random.between(1, 4)) : 0;
  if (session_ != nullptr && random.percent(50)) {
    SSL_set_session(ssl.get(), session_);
    shorter = SSL_SESSION_get_max_fragment_length(session_);
  }
  if (shorter != 0) SSL_set_tlsext_max_fragment_length(ssl.get(), shorter);
  SSL_set_connect_state(ssl.get());
  return ssl;
}

Ssl TlsEnds::make_server(Random& random) {
  Ssl ssl(SSL_new(server_));
  check(ssl != nullptr, "no connection of a server");
  limit_version(ssl.get(), random);
  SSL_set_accept_state(ssl.get());
  return ssl;
}

}  // namespace encore::proxyfuzz
