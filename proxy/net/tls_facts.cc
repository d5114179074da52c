#include "proxy/net/tls_facts.h"

#include <openssl/evp.h>
#include <openssl/ssl.h>

#include <array>
#include <string>

#include "proxy/net/openssl_types.h"

namespace encore::net {
namespace {

std::string_view view_of(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

}  // namespace

TlsFacts facts_of(const ssl_st* ssl) {
  TlsFacts facts{.version = view_of(SSL_get_version(ssl)),
                 .cipher = view_of(SSL_get_cipher_name(ssl)),
                 .server_name = view_of(SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name)),
                 .alpn = {},
                 .resumed = SSL_session_reused(ssl) == 1};
  const unsigned char* alpn = nullptr;
  unsigned alpn_size = 0;
  SSL_get0_alpn_selected(ssl, &alpn, &alpn_size);
  if (alpn_size != 0) facts.alpn = {reinterpret_cast<const char*>(alpn), alpn_size};
  const X509* const shown = SSL_get0_peer_certificate(ssl);
  if (shown == nullptr) return facts;
  facts.subject = name_text(X509_get_subject_name(shown));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (X509_digest(shown, EVP_sha256(), digest.data(), &size) == 1) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    for (unsigned i = 0; i < size; ++i) {
      facts.fingerprint += kDigits[digest[i] >> 4U];
      facts.fingerprint += kDigits[digest[i] & 0xfU];
    }
  }
  return facts;
}

}  // namespace encore::net
