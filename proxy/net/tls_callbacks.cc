// What OpenSSL asks a TlsServer in the midst of a handshake.
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <optional>

#include "proxy/net/tls_context.h"
#include "proxy/net/tls_internal.h"

namespace encore::net {
namespace {

const TlsServer::Context& context_of(const SSL* ssl) {
  return *static_cast<const TlsServer::Context*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
}

const TlsServer& server_of(const SSL* ssl) { return *context_of(ssl).server; }

// RFC 6066 3: the one name of a host. Nothing: it is not to be read.
std::optional<std::string_view> host_name(std::string_view extension) {
  const auto number = [&](std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(extension[at])) * 256 +
           static_cast<unsigned char>(extension[at + 1]);
  };
  constexpr std::size_t kHead = 5;  // bytes of the list, kind, bytes of the name
  if (extension.size() <= kHead || number(0) != extension.size() - 2) return std::nullopt;
  if (extension[2] != TLSEXT_NAMETYPE_host_name) return std::nullopt;
  const std::size_t size = number(3);
  if (size > TLSEXT_MAXLEN_host_name || size != extension.size() - kHead) return std::nullopt;
  return extension.substr(kHead);
}

// Chooses the certificates before anything is made of the hello, a session taken up again too.
int on_client_hello(SSL* ssl, int* alert, void*) {
  const unsigned char* bytes = nullptr;
  std::size_t size = 0;
  std::string name;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &bytes, &size) == 1) {
    const auto said = host_name({reinterpret_cast<const char*>(bytes), size});
    if (!said) {
      *alert = SSL_AD_DECODE_ERROR;
      return SSL_CLIENT_HELLO_ERROR;
    }
    name = *said;
    for (char& c : name) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
  }
  const TlsServer::Context* const chosen = server_of(ssl).find(name);
  if (chosen == nullptr) {
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    return SSL_CLIENT_HELLO_ERROR;
  }
  if (SSL_get_SSL_CTX(ssl) != chosen->ssl.get() &&
      SSL_set_SSL_CTX(ssl, chosen->ssl.get()) == nullptr) {
    *alert = SSL_AD_INTERNAL_ERROR;
    return SSL_CLIENT_HELLO_ERROR;
  }
  return SSL_CLIENT_HELLO_SUCCESS;
}

// The name was looked at; the client is told so (RFC 6066 3).
int on_server_name(SSL*, int*, void*) { return SSL_TLSEXT_ERR_OK; }

int on_alpn(SSL* ssl, const unsigned char** out, unsigned char* out_size,
            const unsigned char* offered, unsigned offered_size, void*) {
  const std::string& ours = server_of(ssl).alpn();
  unsigned char* chosen = nullptr;
  const int result =
      SSL_select_next_proto(&chosen, out_size, reinterpret_cast<const unsigned char*>(ours.data()),
                            static_cast<unsigned>(ours.size()), offered, offered_size);
  *out = chosen;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Shows the staple of the certificate that was chosen, while it is good.
int on_status(SSL* ssl, void*) {
  const X509* const shown = SSL_get_certificate(ssl);
  for (const TlsIdentity* each : context_of(ssl).members) {
    if (shown == nullptr || X509_cmp(each->certificate.get(), shown) != 0) continue;
    if (each->staple.empty() || wall_now() >= each->staple_until) break;
    void* const copy = OPENSSL_memdup(each->staple.data(), each->staple.size());
    if (copy == nullptr) break;
    SSL_set_tlsext_status_ocsp_resp(ssl, copy, static_cast<long>(each->staple.size()));
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_NOACK;
}

// Fetched once: asking for it by name takes a lock each time.
const EVP_CIPHER* ticket_cipher() {
  static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-256-CBC", nullptr);
  return cipher;
}

bool set_mac(EVP_MAC_CTX* mac, TlsTickets::Key& key) {
  std::array<char, 7> digest = {"SHA256"};
  const std::array<OSSL_PARAM, 3> parameters = {
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key.mac.data(), key.mac.size()),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_end()};
  return EVP_MAC_CTX_set_params(mac, parameters.data()) == 1;
}

// 1: the ticket is good; 2: it is, and the client gets another; 0: it is nobody's; -1: failed.
int on_ticket_key(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                  EVP_MAC_CTX* mac, int encrypts) {
  const auto& server = server_of(ssl);
  const MonotonicTime now = monotonic_now();
  if (encrypts == 1) {
    TlsTickets::Key key = server.tickets().current(now);
    std::ranges::copy(key.name, name);
    const bool set =
        RAND_bytes(iv, EVP_CIPHER_get_iv_length(ticket_cipher())) == 1 &&
        EVP_EncryptInit_ex2(cipher, ticket_cipher(), key.cipher.data(), iv, nullptr) == 1 &&
        set_mac(mac, key);
    OPENSSL_cleanse(&key, sizeof key);
    return set ? 1 : -1;
  }
  auto found = server.tickets().find({name, sizeof TlsTickets::Key::name}, now);
  if (!found) return 0;
  const bool set =
      set_mac(mac, found->key) &&
      EVP_DecryptInit_ex2(cipher, ticket_cipher(), found->key.cipher.data(), iv, nullptr) == 1;
  OPENSSL_cleanse(&found->key, sizeof found->key);
  if (!set) return -1;
  // By TLS 1.3 clients use a ticket once, so that nobody else knows them by it (RFC 8446 C.4).
  return found->is_current && SSL_version(ssl) < TLS1_3_VERSION ? 1 : 2;
}

}  // namespace

Result<void> set_callbacks(TlsServer::Context& context) {
  if (ticket_cipher() == nullptr) return fail("TLS: no AES-256-CBC for session tickets");
  SSL_CTX* const ssl = context.ssl.get();
  SSL_CTX_set_app_data(ssl, &context);
  SSL_CTX_set_client_hello_cb(ssl, &on_client_hello, nullptr);
  SSL_CTX_set_tlsext_servername_callback(ssl, &on_server_name);
  if (!context.server->alpn().empty()) SSL_CTX_set_alpn_select_cb(ssl, &on_alpn, nullptr);
  SSL_CTX_set_tlsext_status_cb(ssl, &on_status);
  SSL_CTX_set_tlsext_ticket_key_evp_cb(ssl, &on_ticket_key);
  return {};
}

}  // namespace encore::net
