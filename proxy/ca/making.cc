#include "proxy/ca/making.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>

#include "proxy/ca/handles.h"
#include "proxy/ca/leaf.h"

namespace encore::ca {
namespace {

// X.520 gives a common name so many characters.
constexpr std::size_t kCommonNameMax = 64;

std::string pem_of(BIO& text) {
  char* bytes = nullptr;
  const long length = BIO_get_mem_data(&text, &bytes);
  return {bytes, static_cast<std::size_t>(length)};
}

Result<std::string> pem_of(X509& certificate) {
  const Owned<BIO> text(BIO_new(BIO_s_mem()));
  if (text == nullptr || PEM_write_bio_X509(text.get(), &certificate) != 1) {
    return fail(openssl_reason());
  }
  return pem_of(*text);
}

bool add_subtree(STACK_OF(GENERAL_SUBTREE) * &list, GENERAL_NAME* base) {
  GENERAL_SUBTREE* const subtree = GENERAL_SUBTREE_new();
  if (list == nullptr) list = sk_GENERAL_SUBTREE_new_null();
  if (base == nullptr || subtree == nullptr || list == nullptr ||
      sk_GENERAL_SUBTREE_push(list, subtree) == 0) {
    GENERAL_NAME_free(base);
    GENERAL_SUBTREE_free(subtree);
    return false;
  }
  GENERAL_NAME_free(subtree->base);
  subtree->base = base;
  return true;
}

GENERAL_NAME* host_name(const std::string& name) {
  GENERAL_NAME* const base = GENERAL_NAME_new();
  ASN1_IA5STRING* const text = ASN1_IA5STRING_new();
  if (base == nullptr || text == nullptr ||
      ASN1_STRING_set(text, name.data(), static_cast<int>(name.size())) != 1) {
    GENERAL_NAME_free(base);
    ASN1_IA5STRING_free(text);
    return nullptr;
  }
  GENERAL_NAME_set0_value(base, GEN_DNS, text);
  return base;
}

// Every address of a family: an address and a mask of zeros.
GENERAL_NAME* all_addresses(std::size_t address_bytes) {
  const std::string zeros(2 * address_bytes, '\0');
  GENERAL_NAME* const base = GENERAL_NAME_new();
  ASN1_OCTET_STRING* const block = ASN1_OCTET_STRING_new();
  if (base == nullptr || block == nullptr ||
      ASN1_STRING_set(block, zeros.data(), static_cast<int>(zeros.size())) != 1) {
    GENERAL_NAME_free(base);
    ASN1_OCTET_STRING_free(block);
    return nullptr;
  }
  GENERAL_NAME_set0_value(base, GEN_IPADD, block);
  return base;
}

bool add_constraints(X509& certificate, const std::vector<std::string>& permitted) {
  const Owned<NAME_CONSTRAINTS> constraints(NAME_CONSTRAINTS_new());
  if (constraints == nullptr) return false;
  for (const std::string& name : permitted) {
    if (!add_subtree(constraints->permittedSubtrees, host_name(name))) return false;
  }
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{16}}) {
    if (!add_subtree(constraints->excludedSubtrees, all_addresses(bytes))) return false;
  }
  return add_extension(certificate, NID_name_constraints, true, constraints.get());
}

bool set_own_name(X509& certificate, const std::string& name) {
  const std::string shown = name.substr(0, kCommonNameMax);
  X509_NAME* const subject = X509_get_subject_name(&certificate);
  return X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(shown.data()),
                                    static_cast<int>(shown.size()), -1, 0) == 1 &&
         X509_set_issuer_name(&certificate, subject) == 1;
}

// Clocks of clients that are a little behind do not make it one of tomorrow.
WallTime beginning(WallTime now) { return now - std::chrono::days(1); }

}  // namespace

std::vector<std::string> constraint_names(const std::vector<std::string>& hosts) {
  std::vector<std::string> names;
  for (const std::string& host : hosts) {
    names.push_back(host.starts_with("*.") ? host.substr(2) : host);
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  const std::vector<std::string> all = names;
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::any_of(all, [&](const std::string& other) {
      return name.size() > other.size() && name.ends_with("." + other);
    });
  });
  return names;
}

Result<CreatedCa> make_authority(const NewAuthority& wanted) {
  ERR_clear_error();
  if (wanted.hosts.empty() && !wanted.any_host) {
    return fail("no host to sign for; name some, or any host");
  }
  const std::vector<std::string> permitted =
      wanted.any_host ? std::vector<std::string>() : constraint_names(wanted.hosts);
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const Owned<X509> made(X509_new());
  const Owned<BIO> key_text(BIO_new(BIO_s_mem()));
  const bool good =
      key != nullptr && made != nullptr && key_text != nullptr && set_random_serial(*made) &&
      set_times(*made, beginning(wanted.now), wanted.now + wanted.life) &&
      set_own_name(*made, wanted.name) && X509_set_pubkey(made.get(), key.get()) == 1 &&
      add_basic_constraints(*made, true) && add_key_usage(*made, {kKeyCertSign, kCrlSign}) &&
      add_subject_key(*made) && add_constraints(*made, permitted) && sign(*made, *key) &&
      PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                    nullptr) == 1;
  if (!good) return fail("cannot create a certificate: " + openssl_reason());
  auto certificate = pem_of(*made);
  if (!certificate) return std::unexpected(certificate.error());
  return CreatedCa{.certificate = std::move(*certificate), .key = pem_of(*key_text)};
}

Result<std::string> renew_certificate(const Authority& authority, WallTime now,
                                      std::chrono::days life) {
  ERR_clear_error();
  const Owned<X509> again(X509_dup(authority.certificate()));
  const bool good = again != nullptr && set_random_serial(*again) &&
                    set_times(*again, beginning(now), now + life) && sign(*again, *authority.key());
  if (!good) return fail("cannot create a certificate: " + openssl_reason());
  return pem_of(*again);
}

}  // namespace encore::ca
