// Owners of OpenSSL's objects; and its errors in words. For proxy/ca only.
#pragma once

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace encore::ca {

struct Freed {
  void operator()(ASN1_STRING* it) const { ASN1_STRING_free(it); }
  void operator()(BIGNUM* it) const { BN_free(it); }
  void operator()(BIO* it) const { BIO_free(it); }
  void operator()(EVP_PKEY* it) const { EVP_PKEY_free(it); }
  void operator()(GENERAL_NAMES* it) const { GENERAL_NAMES_free(it); }
  void operator()(NAME_CONSTRAINTS* it) const { NAME_CONSTRAINTS_free(it); }
  void operator()(X509* it) const { X509_free(it); }
};
template <typename T>
using Owned = std::unique_ptr<T, Freed>;

// The oldest queued error as one line, without its codes; the queue is empty then.
std::string openssl_reason();

}  // namespace encore::ca
