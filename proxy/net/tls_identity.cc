#include "proxy/net/tls_identity.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <utility>

#include "proxy/net/certificate_file.h"
#include "proxy/net/tls_internal.h"
#include "proxy/net/tls_staple.h"

namespace encore::net {
namespace {

using Names = std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)>;

// Returns the index of the key's certificate; the size of the chain: it has none.
std::size_t place_of(EVP_PKEY* key, const std::vector<OpenSsl<X509>>& chain) {
  const auto found = std::ranges::find_if(
      chain, [key](const auto& each) { return X509_check_private_key(each.get(), key) == 1; });
  ERR_clear_error();
  return static_cast<std::size_t>(found - chain.begin());
}

std::string lower(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

std::string_view text_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

// Names of hosts; a certificate without any has the common name of its subject, as was once usual.
std::vector<std::string> names_of(const X509* certificate) {
  std::vector<std::string> names;
  const auto add = [&names](std::string_view text) {
    const bool plain =
        !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
    std::string name = lower(text);
    if (plain && std::ranges::count(names, name) == 0) names.push_back(std::move(name));
  };
  const Names all(static_cast<GENERAL_NAMES*>(
                      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
                  &GENERAL_NAMES_free);
  for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* each = sk_GENERAL_NAME_value(all.get(), i);
    if (each->type == GEN_DNS) add(text_of(each->d.dNSName));
  }
  if (all != nullptr) return names;
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) add(text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  return names;
}

Result<void> read_staple(const std::string& file, WallTime now, TlsIdentity& identity) {
  auto der = read_small_file(file);
  if (!der) return fail(der.error().message);
  ERR_clear_error();
  const auto until = staple_end(*der, identity.certificate.get(), now);
  ERR_clear_error();
  if (!until) return fail(until.error().message);
  identity.staple = std::move(*der);
  identity.staple_until = *until;
  return {};
}

}  // namespace

TlsIdentity::Marks TlsIdentity::marks_of(const Files& files) {
  Marks marks{FileMark::of(files.certificate), FileMark::of(files.key), FileMark{}};
  if (!files.ocsp.empty()) marks[2] = FileMark::of(files.ocsp);
  return marks;
}

Result<TlsIdentity> TlsIdentity::load(const Files& files, WallTime now) {
  // A file that changes while it is read has another mark at the next check.
  const Marks marks = marks_of(files);
  auto key = read_private_key(files.key);
  if (!key) return in_file("key", files.key, key.error().message);
  auto read = read_certificates(files.certificate);
  if (!read) return in_file("certificate", files.certificate, read.error().message);
  const std::size_t place = place_of(key->get(), *read);
  if (place == read->size()) {
    return fail("key \"" + files.key + "\" does not match the certificate \"" + files.certificate +
                "\"");
  }
  if (place != 0) {
    return in_file("certificate", files.certificate,
                   "that of the key is certificate " + ordinal(place + 1) +
                       ", accepted: the first, each followed by its issuer");
  }
  if (auto good = check_chain(*read, now); !good) {
    return in_file("certificate", files.certificate, good.error().message);
  }
  TlsIdentity identity;
  identity.files = files;
  identity.marks = marks;
  identity.key = std::move(*key);
  identity.key_type = EVP_PKEY_get_base_id(identity.key.get());
  identity.certificate = std::move(read->front());
  identity.chain.reset(sk_X509_new_null());
  if (identity.chain == nullptr) return fail("no memory for a certificate");
  for (std::size_t i = 1; i < read->size(); ++i) {
    if (sk_X509_push(identity.chain.get(), (*read)[i].get()) == 0) {
      return fail("no memory for a certificate");
    }
    (void)(*read)[i].release();
  }
  identity.names = names_of(identity.certificate.get());
  identity.not_before = time_of(X509_get0_notBefore(identity.certificate.get()));
  identity.not_after = time_of(X509_get0_notAfter(identity.certificate.get()));
  if (!files.ocsp.empty()) {
    if (auto stapled = read_staple(files.ocsp, now, identity); !stapled) {
      return in_file("ocsp", files.ocsp, stapled.error().message);
    }
  }
  return identity;
}

}  // namespace encore::net
