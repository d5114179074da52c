// TlsIdentity: a certificate with its chain and key, as a server shows it. For net/ only. Immutable
// once made, thread-safe.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "proxy/net/tls_server.h"

namespace encore::net {

struct OpenSslFree {
  void operator()(X509* x) const { X509_free(x); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(STACK_OF(X509) * chain) const { sk_X509_pop_free(chain, &X509_free); }
};
template <typename T>
using OpenSsl = std::unique_ptr<T, OpenSslFree>;

struct TlsIdentity {
  // Reads and checks the files of a pair. Errors show the file and what is wrong: not to be read,
  // no PEM, a key that is not the certificate's or that others can read, not valid at `now`, a
  // chain that is not in order, a staple that is not of this certificate.
  static Result<TlsIdentity> load(const TlsServer::Pair& pair, WallTime now);

  std::string certificate_file;
  OpenSsl<X509> certificate;
  OpenSsl<STACK_OF(X509)> chain;  // the certificates above it
  OpenSsl<EVP_PKEY> key;
  int key_type = 0;                // EVP_PKEY_base_id
  std::vector<std::string> names;  // lower case, as the certificate has them: also "*.example.com"
  WallTime not_after{};
  std::string staple;       // DER; empty: none
  WallTime staple_until{};  // shown no longer
};

// The time of a certificate.
WallTime time_of(const ASN1_TIME* time);
// Of a name, as one line of ASCII, at most 1024 bytes (RFC 2253, control characters escaped).
std::string name_text(const X509_NAME* name);

}  // namespace encore::net
