#include "tests/net/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "tests/catch.h"

namespace encore::net {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

constexpr long kDay = 24 * 60 * 60;

void add_extension(X509* certificate, X509* issuer, int id, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value);
  REQUIRE(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// `issuer` null: signed by itself. `names` null: an authority.
Certificate make_certificate(EVP_PKEY* key, EVP_PKEY* signer, X509* issuer, const char* name,
                             long until, const char* names = nullptr, long from = -10 * kDay) {
  static long serial = 1;
  Certificate certificate(X509_new(), &X509_free);
  X509* x = certificate.get();
  X509_set_version(x, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x), serial++);
  X509_gmtime_adj(X509_getm_notBefore(x), from);
  X509_gmtime_adj(X509_getm_notAfter(x), until);
  X509_set_pubkey(x, key);
  X509_NAME* subject = X509_get_subject_name(x);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  X509* by = issuer == nullptr ? x : issuer;
  X509_set_issuer_name(x, X509_get_subject_name(by));
  if (names == nullptr) {
    add_extension(x, by, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(x, by, NID_key_usage, "critical,keyCertSign,cRLSign");
  } else {
    add_extension(x, by, NID_subject_alt_name, names);
  }
  REQUIRE(X509_sign(x, signer, EVP_sha256()) > 0);
  return certificate;
}

File open_file(const std::string& path) {
  File file(std::fopen(path.c_str(), "w"), &std::fclose);
  REQUIRE(file != nullptr);
  return file;
}

void save(const std::string& path, X509* certificate) {
  REQUIRE(PEM_write_X509(open_file(path).get(), certificate) == 1);
}

// For their owner alone.
void save_key(const std::string& path, EVP_PKEY* key) {
  REQUIRE(PEM_write_PrivateKey(open_file(path).get(), key, nullptr, nullptr, 0, nullptr, nullptr) ==
          1);
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
}

constexpr const char* kNames = "DNS:origin.test,DNS:*.wild.test,IP:127.0.0.1,IP:::1";

}  // namespace

// The signing authority.
struct TestCertificates::Authority {
  Key key{EVP_EC_gen("P-256"), &EVP_PKEY_free};
  Certificate certificate = make_certificate(key.get(), key.get(), nullptr, "Encore test CA", kDay);
};

TestCertificates::TestCertificates() : authority_(std::make_unique<Authority>()) {
  std::string name = std::filesystem::temp_directory_path() / "encore-net-XXXXXX";
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  directory_ = name;
  EVP_PKEY* const signer = authority_->key.get();
  X509* const ca = authority_->certificate.get();
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  save(ca_file(), ca);
  save(certificate_file(), make_certificate(key.get(), signer, ca, "leaf", kDay, kNames).get());
  save(expired_file(), make_certificate(key.get(), signer, ca, "old", -kDay, kNames).get());
  save_key(key_file(), key.get());
}

TestCertificates::~TestCertificates() { std::filesystem::remove_all(directory_); }

TestCertificates::Pair TestCertificates::make(const Wanted& wanted) const {
  const std::string base = directory_ + "/made-" + std::to_string(++made_);
  const Key key(wanted.rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const Certificate made = make_certificate(
      key.get(), authority_->key.get(), authority_->certificate.get(), wanted.subject.c_str(),
      wanted.until_days * kDay, wanted.names.c_str(), wanted.from_days * kDay);
  save(base + ".pem", made.get());
  save_key(base + ".key", key.get());
  return {base + ".pem", base + ".key"};
}

const TestCertificates& certificates() {
  static const TestCertificates made;
  return made;
}

}  // namespace encore::net
