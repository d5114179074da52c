// Owners of OpenSSL's objects and functions that read them. For net/ only. Functions without a
// state, thread-safe.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "base/time.h"

namespace encore::net {

struct OpenSslFree {
  void operator()(X509* x) const { X509_free(x); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(STACK_OF(X509) * chain) const { sk_X509_pop_free(chain, &X509_free); }
};
template <typename T>
using OpenSsl = std::unique_ptr<T, OpenSslFree>;

// The time of a certificate.
WallTime time_of(const ASN1_TIME* time);
// Returns a name as one line of ASCII, at most 1024 bytes (RFC 2253, control characters escaped).
std::string name_text(const X509_NAME* name);

}  // namespace encore::net
