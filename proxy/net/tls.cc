#include "proxy/net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <cstring>

#include "proxy/net/address.h"
#include "proxy/net/certificate_file.h"
#include "proxy/net/tls_internal.h"
#include "proxy/net/tls_session.h"

namespace encore::net {
namespace {

// The second begins behind what the first has in front of it.
constexpr unsigned char kAlpn[] = "\x02h2\x08http/1.1";
constexpr unsigned kAlpnBytes = sizeof kAlpn - 1;
constexpr unsigned kHttp2Bytes = 3;

int on_new_session(SSL* ssl, SSL_SESSION* session) {
  const auto* tls = static_cast<TlsSession*>(SSL_get_app_data(ssl));
  if (tls == nullptr || tls->session_key().empty()) return 0;
  auto* shared = static_cast<TlsShared*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  shared->sessions.put(tls->session_key(), session);
  return 1;  // the reference is ours now
}

Result<void> use_certificate(SSL_CTX* context, const std::string& certificate_file,
                             const std::string& key_file) {
  if (SSL_CTX_use_certificate_chain_file(context, certificate_file.c_str()) != 1) {
    return fail("certificate \"" + certificate_file + "\": " + openssl_error());
  }
  const auto key = read_private_key(key_file);
  if (!key) return in_file("key", key_file, key.error().message);
  if (SSL_CTX_use_PrivateKey(context, key->get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return fail("key \"" + key_file + "\" does not match the certificate \"" + certificate_file +
                "\"");
  }
  return {};
}

}  // namespace

SSL_CTX* new_context(const SSL_METHOD* method) {
  SSL_CTX* context = SSL_CTX_new(method);
  if (context == nullptr) return nullptr;
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Moving buffers: what a write did not take is offered again from wherever the caller has it.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  return context;
}

std::string openssl_error() {
  const unsigned long code = ERR_peek_error();
  if (code == 0) return "unknown error";
  if (ERR_SYSTEM_ERROR(code)) return std::strerror(ERR_GET_REASON(code));
  if (const char* reason = ERR_reason_error_string(code)) return reason;
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  return text;
}

SessionStore::~SessionStore() {
  for (const auto& [key, session] : sessions_) SSL_SESSION_free(session);
}

void SessionStore::put(const std::string& key, SSL_SESSION* session) {
  const MutexLock lock(mutex_);
  const auto [at, is_new] = sessions_.try_emplace(key, session);
  if (!is_new) {
    SSL_SESSION_free(at->second);
    at->second = session;
    return;
  }
  order_.push_back(key);
  if (order_.size() <= kSessionsMax) return;
  const auto oldest = sessions_.find(order_.front());
  SSL_SESSION_free(oldest->second);
  sessions_.erase(oldest);
  order_.pop_front();
}

void SessionStore::give(const std::string& key, SSL* ssl) {
  const MutexLock lock(mutex_);
  const auto at = sessions_.find(key);
  if (at != sessions_.end()) SSL_set_session(ssl, at->second);
}

Result<TlsContext> TlsContext::client(const ClientOptions& options) {
  ERR_clear_error();
  SSL_CTX* const context = new_context(TLS_client_method());
  if (context == nullptr) return fail("TLS: " + openssl_error());
  auto shared = std::make_shared<TlsShared>(context);
  SSL_CTX_set_app_data(context, shared.get());
  shared->verify_peer = options.verify_peer;
  const bool loaded = options.ca_file.empty()
                          ? SSL_CTX_set_default_verify_paths(context) == 1
                          : SSL_CTX_load_verify_file(context, options.ca_file.c_str()) == 1;
  if (!loaded) {
    return fail("certificates of authorities in \"" + options.ca_file + "\": " + openssl_error());
  }
  if (!options.certificate_file.empty()) {
    auto used = use_certificate(context, options.certificate_file, options.key_file);
    if (!used) return std::unexpected(used.error());
  }
  SSL_CTX_set_verify(context, options.verify_peer ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  const unsigned skipped = options.http2 ? 0 : kHttp2Bytes;
  SSL_CTX_set_alpn_protos(context, kAlpn + skipped, kAlpnBytes - skipped);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, &on_new_session);
  return TlsContext(std::move(shared));
}

void TlsSessionDeleter::operator()(TlsSession* session) const { delete session; }

TlsContext::TlsContext(std::shared_ptr<TlsShared> shared) : shared_(std::move(shared)) {}
TlsContext::TlsContext(TlsContext&&) noexcept = default;
TlsContext& TlsContext::operator=(TlsContext&&) noexcept = default;
TlsContext::~TlsContext() = default;

TlsSessionPointer TlsContext::session(const std::string& host,
                                      const std::string& session_key) const {
  SSL* ssl = SSL_new(shared_->context);
  if (ssl == nullptr) return nullptr;
  TlsSessionPointer session(new TlsSession(shared_, ssl, TlsSession::Side::kClient, session_key));
  const bool numeric = Address::parse_ip(host, 0).has_value();
  if (!numeric && SSL_set_tlsext_host_name(ssl, host.c_str()) != 1) return nullptr;
  if (shared_->verify_peer) {
    X509_VERIFY_PARAM* parameters = SSL_get0_param(ssl);
    // A common name is nobody's identity (RFC 9110 4.3.4), also where there is no other name.
    X509_VERIFY_PARAM_set_hostflags(
        parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    const bool set = numeric ? X509_VERIFY_PARAM_set1_ip_asc(parameters, host.c_str()) == 1
                             : SSL_set1_host(ssl, host.c_str()) == 1;
    // Without a name to check, any valid certificate would do.
    if (!set || host.empty()) return nullptr;
  }
  if (!session_key.empty()) shared_->sessions.give(session_key, ssl);
  return session;
}

}  // namespace encore::net
