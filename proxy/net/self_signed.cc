#include "proxy/net/self_signed.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <chrono>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

#include "proxy/net/tls_internal.h"

namespace encore::net {
namespace {

using Number = std::unique_ptr<BIGNUM, decltype(&BN_free)>;
using Extension = std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)>;

constexpr std::chrono::days kSelfSignedLife(3650);
// For clients whose clocks are slow.
constexpr std::chrono::hours kEarlier(24);
constexpr long kVersion3 = 2;

bool set_serial(X509* certificate) {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) return false;
  bytes[0] &= 0x7fU;  // positive
  bytes[0] |= 0x40U;  // and never 0
  const Number number(BN_bin2bn(bytes.data(), bytes.size(), nullptr), &BN_free);
  return number != nullptr &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_subject(X509* certificate) {
  X509_NAME* const name = X509_get_subject_name(certificate);
  constexpr std::string_view kName = "Encore self-signed";
  return X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>(kName.data()),
                                    static_cast<int>(kName.size()), -1, 0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1;
}

bool set_times(X509* certificate, WallTime now) {
  const auto seconds = [](WallTime time) {
    return static_cast<std::time_t>(
        std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count());
  };
  return ASN1_TIME_set(X509_getm_notBefore(certificate), seconds(now - kEarlier)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), seconds(now + kSelfSignedLife)) != nullptr;
}

bool add_extension(X509* certificate, int kind, const std::string& text) {
  const Extension made(X509V3_EXT_conf_nid(nullptr, nullptr, kind, text.c_str()),
                       &X509_EXTENSION_free);
  return made != nullptr && X509_add_ext(certificate, made.get(), -1) == 1;
}

bool add_extensions(X509* certificate, const std::vector<std::string>& names) {
  std::string listed;
  for (const std::string& name : names) listed += (listed.empty() ? "DNS:" : ",DNS:") + name;
  return add_extension(certificate, NID_subject_alt_name, listed) &&
         add_extension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
         add_extension(certificate, NID_key_usage, "critical,digitalSignature") &&
         add_extension(certificate, NID_ext_key_usage, "serverAuth");
}

}  // namespace

Result<TlsIdentity> make_self_signed(const std::vector<std::string>& names, WallTime now) {
  TlsIdentity made;
  made.is_stand_in = true;
  made.names = names;
  ERR_clear_error();
  made.key.reset(EVP_EC_gen("P-256"));
  made.certificate.reset(X509_new());
  made.chain.reset(sk_X509_new_null());
  X509* const certificate = made.certificate.get();
  const bool done = made.key != nullptr && certificate != nullptr && made.chain != nullptr &&
                    X509_set_version(certificate, kVersion3) == 1 && set_serial(certificate) &&
                    set_subject(certificate) && set_times(certificate, now) &&
                    X509_set_pubkey(certificate, made.key.get()) == 1 &&
                    add_extensions(certificate, made.names) &&
                    X509_sign(certificate, made.key.get(), EVP_sha256()) > 0;
  if (!done) return fail("a self-signed certificate: " + openssl_error());
  made.key_type = EVP_PKEY_get_base_id(made.key.get());
  made.not_before = time_of(X509_get0_notBefore(certificate));
  made.not_after = time_of(X509_get0_notAfter(certificate));
  return made;
}

}  // namespace encore::net
