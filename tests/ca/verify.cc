#include "tests/ca/verify.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "proxy/ca/handles.h"
#include "proxy/ca/leaf.h"
#include "tests/catch.h"

namespace encore::ca {
namespace {

Owned<X509> certificate_of(const std::string& der) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  Owned<X509> certificate(d2i_X509(nullptr, &bytes, static_cast<long>(der.size())));
  REQUIRE(certificate != nullptr);
  return certificate;
}

std::string signed_with(const Authority& authority, WallTime now, auto&& add_name) {
  const Owned<X509> made(X509_new());
  REQUIRE(set_random_serial(*made));
  REQUIRE(set_times(*made, now - std::chrono::hours(1), now + std::chrono::hours(1)));
  X509_set_issuer_name(made.get(), X509_get_subject_name(authority.certificate()));
  X509_set_pubkey(made.get(), authority.key());
  add_name(*made);
  REQUIRE(sign(*made, *authority.key()));
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(made.get(), &bytes);
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

}  // namespace

CreatedCa made_for(const std::vector<std::string>& hosts, std::chrono::days life) {
  auto made = make_authority(
      {.name = "test", .hosts = hosts, .any_host = hosts.empty(), .now = kNow, .life = life});
  REQUIRE(made.has_value());
  return std::move(*made);
}

Authority parsed(const CreatedCa& made) {
  auto authority = Authority::parse(made.certificate, made.key);
  REQUIRE(authority.has_value());
  return std::move(*authority);
}

std::string verdict(const std::string& leaf, const Authority& root, const std::string& host,
                    WallTime now) {
  X509_STORE* const store = X509_STORE_new();
  X509_STORE_add_cert(store, root.certificate());
  const Owned<X509> certificate = certificate_of(leaf);
  X509_STORE_CTX* const context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, store, certificate.get(), nullptr);
  X509_VERIFY_PARAM* const wanted = X509_STORE_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_purpose(wanted, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set_flags(wanted, X509_V_FLAG_X509_STRICT | X509_V_FLAG_CHECK_SS_SIGNATURE);
  X509_VERIFY_PARAM_set_time(
      wanted, std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count());
  const bool is_address = host.find_first_not_of("0123456789.") == std::string::npos;
  if (is_address) {
    X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size());
  }
  X509_verify_cert(context);
  const std::string said = X509_verify_cert_error_string(X509_STORE_CTX_get_error(context));
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  ERR_clear_error();
  return said;
}

std::string forged(const Authority& authority, const std::string& host, WallTime now) {
  return signed_with(authority, now, [&](X509& made) {
    REQUIRE(add_host(made, host));
    REQUIRE(add_basic_constraints(made, false));
    REQUIRE(add_authority_key(made, *authority.certificate()));
  });
}

std::string forged_address(const Authority& authority, std::string_view bytes, WallTime now) {
  return signed_with(authority, now, [&](X509& made) {
    GENERAL_NAMES* const names = GENERAL_NAMES_new();
    GENERAL_NAME* const name = GENERAL_NAME_new();
    ASN1_OCTET_STRING* const address = ASN1_OCTET_STRING_new();
    ASN1_OCTET_STRING_set(address, reinterpret_cast<const unsigned char*>(bytes.data()),
                          static_cast<int>(bytes.size()));
    GENERAL_NAME_set0_value(name, GEN_IPADD, address);
    sk_GENERAL_NAME_push(names, name);
    REQUIRE(add_extension(made, NID_subject_alt_name, true, names));
    GENERAL_NAMES_free(names);
    REQUIRE(add_authority_key(made, *authority.certificate()));
  });
}

}  // namespace encore::ca
