#include "proxy/ca/leaf.h"

#include <openssl/rand.h>

#include <array>

namespace encore::ca {
namespace {

// 127 random bits, of which 64 are required (CA/Browser Forum, Baseline Requirements 7.1).
constexpr std::size_t kSerialBytes = 16;

constexpr long kVersion3 = 2;

}  // namespace

bool set_random_serial(X509& certificate) {
  std::array<unsigned char, kSerialBytes> bytes{};
  if (RAND_bytes(bytes.data(), kSerialBytes) != 1) return false;
  bytes[0] &= 0x7fU;  // positive
  bytes[0] |= 0x40U;  // and never 0
  const Owned<BIGNUM> number(BN_bin2bn(bytes.data(), kSerialBytes, nullptr));
  return number != nullptr &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) != nullptr;
}

bool set_times(X509& certificate, WallTime not_before, WallTime not_after) {
  const auto seconds = [](WallTime time) {
    return static_cast<std::time_t>(
        std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count());
  };
  return X509_set_version(&certificate, kVersion3) == 1 &&
         ASN1_TIME_set(X509_getm_notBefore(&certificate), seconds(not_before)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(&certificate), seconds(not_after)) != nullptr;
}

bool add_extension(X509& certificate, int nid, bool critical, void* value) {
  return X509_add1_ext_i2d(&certificate, nid, value, critical ? 1 : 0, X509V3_ADD_APPEND) == 1;
}

bool add_host(X509& certificate, std::string_view host) {
  const Owned<GENERAL_NAMES> names(GENERAL_NAMES_new());
  GENERAL_NAME* const name = GENERAL_NAME_new();
  ASN1_IA5STRING* const text = ASN1_IA5STRING_new();
  if (names == nullptr || name == nullptr || text == nullptr ||
      sk_GENERAL_NAME_push(names.get(), name) == 0) {
    GENERAL_NAME_free(name);
    ASN1_IA5STRING_free(text);
    return false;
  }
  GENERAL_NAME_set0_value(name, GEN_DNS, text);
  return ASN1_STRING_set(text, host.data(), static_cast<int>(host.size())) == 1 &&
         add_extension(certificate, NID_subject_alt_name, true, names.get());
}

bool add_basic_constraints(X509& certificate, bool is_authority) {
  BASIC_CONSTRAINTS* const value = BASIC_CONSTRAINTS_new();
  if (value == nullptr) return false;
  value->ca = is_authority ? 0xff : 0;
  if (is_authority) value->pathlen = ASN1_INTEGER_new();
  const bool set =
      !is_authority || (value->pathlen != nullptr && ASN1_INTEGER_set(value->pathlen, 0) == 1);
  const bool added = set && add_extension(certificate, NID_basic_constraints, true, value);
  BASIC_CONSTRAINTS_free(value);
  return added;
}

bool add_key_usage(X509& certificate, std::initializer_list<int> bits) {
  ASN1_BIT_STRING* const value = ASN1_BIT_STRING_new();
  bool set = value != nullptr;
  for (const int bit : bits) set = set && ASN1_BIT_STRING_set_bit(value, bit, 1) == 1;
  set = set && add_extension(certificate, NID_key_usage, true, value);
  ASN1_BIT_STRING_free(value);
  return set;
}

bool add_subject_key(X509& certificate) {
  // RFC 5280 4.2.1.2, method 1: SHA-1 of the key, as a name and not as a proof.
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const Owned<ASN1_OCTET_STRING> value(ASN1_OCTET_STRING_new());
  return value != nullptr &&
         X509_pubkey_digest(&certificate, EVP_sha1(), digest.data(), &size) == 1 &&
         ASN1_OCTET_STRING_set(value.get(), digest.data(), static_cast<int>(size)) == 1 &&
         add_extension(certificate, NID_subject_key_identifier, false, value.get());
}

bool add_authority_key(X509& certificate, const X509& signer) {
  const Owned<ASN1_OCTET_STRING> id(static_cast<ASN1_OCTET_STRING*>(
      X509_get_ext_d2i(&signer, NID_subject_key_identifier, nullptr, nullptr)));
  if (id == nullptr) return true;
  AUTHORITY_KEYID* const value = AUTHORITY_KEYID_new();
  if (value == nullptr) return false;
  value->keyid = ASN1_OCTET_STRING_dup(id.get());
  const bool added = value->keyid != nullptr &&
                     add_extension(certificate, NID_authority_key_identifier, false, value);
  AUTHORITY_KEYID_free(value);
  return added;
}

bool sign(X509& certificate, EVP_PKEY& key) {
  return X509_sign(&certificate, &key, EVP_sha256()) > 0;
}

}  // namespace encore::ca
