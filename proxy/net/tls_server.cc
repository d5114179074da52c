#include "proxy/net/tls_server.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/check.h"
#include "proxy/net/tls_identity.h"
#include "proxy/net/tls_internal.h"
#include "proxy/net/tls_session.h"

namespace encore::net {

// One or more certificates, of different kinds of keys, that answer for the same names.
struct TlsServer::Context {
  OpenSsl<SSL_CTX> ssl;
  const TlsServer* server = nullptr;  // its owner
  std::vector<const TlsIdentity*> members;
};

namespace {

// ---- callbacks of OpenSSL during a handshake

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
    static_cast<TlsSession*>(SSL_get_app_data(ssl))->note_unknown_name(name);
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

// The name was checked; the client receives a confirmation (RFC 6066 3).
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

// A ticket that a client was given for its certificate is good for no longer than that.
SSL_TICKET_RETURN on_ticket(SSL*, SSL_SESSION* session, const unsigned char*, std::size_t,
                            SSL_TICKET_STATUS status, void*) {
  if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) {
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  }
  const X509* const shown = SSL_SESSION_get0_peer(session);
  if (shown != nullptr && X509_cmp_current_time(X509_get0_notAfter(shown)) <= 0) {
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  }
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

// Each session of the context holds the server.
Result<void> set_callbacks(TlsServer::Context& context) {
  if (ticket_cipher() == nullptr) return fail("TLS: no AES-256-CBC for session tickets");
  SSL_CTX* const ssl = context.ssl.get();
  SSL_CTX_set_app_data(ssl, &context);
  SSL_CTX_set_client_hello_cb(ssl, &on_client_hello, nullptr);
  SSL_CTX_set_tlsext_servername_callback(ssl, &on_server_name);
  if (!context.server->alpn().empty()) SSL_CTX_set_alpn_select_cb(ssl, &on_alpn, nullptr);
  SSL_CTX_set_tlsext_status_cb(ssl, &on_status);
  SSL_CTX_set_tlsext_ticket_key_evp_cb(ssl, &on_ticket_key);
  SSL_CTX_set_session_ticket_cb(ssl, nullptr, &on_ticket, nullptr);
  return {};
}

// ---- settings of a context

// With TLS 1.2 only what has forward secrecy and authenticates what it encrypts. The server's order
// counts, but for clients that have no instructions for AES and say so by theirs.
constexpr const char* kCiphers12 = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr const char* kCiphers13 =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr const char* kGroups = "X25519:P-256";
// Lifetime of the session in a ticket, in seconds.
constexpr long kSessionSeconds = 2L * 60 * 60;

std::unexpected<Error> openssl_fault(const std::string& what) {
  return fail(what + ": " + openssl_error());
}

Result<void> set_protocol(SSL_CTX* ssl, const TlsServer::Options& options) {
  if (options.only_tls13) SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION);
  SSL_CTX_set_options(ssl, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_timeout(ssl, kSessionSeconds);
  const bool set = SSL_CTX_set_cipher_list(ssl, kCiphers12) == 1 &&
                   SSL_CTX_set_ciphersuites(ssl, kCiphers13) == 1 &&
                   SSL_CTX_set1_groups_list(ssl, kGroups) == 1 &&
                   SSL_CTX_set_num_tickets(ssl, 1) == 1;
  if (!set) return openssl_fault("TLS");
  return {};
}

Result<void> load_authorities(SSL_CTX* ssl, const std::string& file) {
  STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(file.c_str());
  if (names == nullptr || SSL_CTX_load_verify_file(ssl, file.c_str()) != 1) {
    sk_X509_NAME_pop_free(names, &X509_NAME_free);
    return openssl_fault("certificates of authorities in \"" + file + "\"");
  }
  SSL_CTX_set_client_CA_list(ssl, names);
  return {};
}

// `from`: shares its authorities; null: they are read.
Result<void> set_client_verify(SSL_CTX* ssl, const TlsServer::Options& options,
                               const SSL_CTX* from) {
  if (options.client_verify == TlsServer::ClientVerify::kOff) return {};
  if (from == nullptr) {
    if (auto loaded = load_authorities(ssl, options.client_ca_file); !loaded) return loaded;
  } else {
    SSL_CTX_set1_cert_store(ssl, SSL_CTX_get_cert_store(from));
    SSL_CTX_set_client_CA_list(ssl, SSL_dup_CA_list(SSL_CTX_get_client_CA_list(from)));
  }
  const bool required = options.client_verify == TlsServer::ClientVerify::kRequire;
  SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                     nullptr);
  return {};
}

// The scope of a ticket: the same names, and the same authorities of clients. With another set of
// either its client begins anew. So no client bypasses a check that it would not pass, and nobody
// leads it to another site of ours. A certificate that is renewed changes nothing.
Result<void> set_session_context(SSL_CTX* ssl, const TlsServer::Options& options,
                                 const std::vector<const TlsIdentity*>& members) {
  std::string text = "encore\n" + std::to_string(static_cast<int>(options.client_verify)) + "\n";
  const STACK_OF(X509_NAME)* const authorities = SSL_CTX_get_client_CA_list(ssl);
  const X509_STORE* const store = SSL_CTX_get_cert_store(ssl);
  const STACK_OF(X509_OBJECT)* const trusted = X509_STORE_get0_objects(store);
  for (int i = 0; authorities != nullptr && i < sk_X509_OBJECT_num(trusted); ++i) {
    const X509* const each = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(trusted, i));
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    if (each == nullptr || X509_digest(each, EVP_sha256(), digest.data(), &size) != 1) continue;
    text.append(reinterpret_cast<const char*>(digest.data()), size);
  }
  std::vector<std::string> names;
  for (const TlsIdentity* each : members) {
    names.insert(names.end(), each->names.begin(), each->names.end());
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) text += "\n" + name;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  static_assert(SSL_MAX_SID_CTX_LENGTH == 32, "a SHA-256");
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1 ||
      SSL_CTX_set_session_id_context(ssl, digest.data(), size) != 1) {
    return openssl_fault("TLS");
  }
  return {};
}

std::string wire_format(const std::vector<std::string>& protocols) {
  std::string text;
  for (const std::string& each : protocols) text += static_cast<char>(each.size()) + each;
  return text;
}

}  // namespace

TlsServer::TlsServer(const Options& options, Identities identities)
    : identities_(std::move(identities)),
      tickets_(options.tickets),
      alpn_(wire_format(options.alpn)),
      refuse_unknown_name_(options.refuse_unknown_name) {
  for (const auto& each : identities_) {
    certificates_.push_back({.file = each->files.certificate,
                             .names = each->names,
                             .not_before = each->not_before,
                             .not_after = each->not_after,
                             .is_stand_in = each->is_stand_in});
  }
}

TlsServer::~TlsServer() = default;

Result<std::shared_ptr<const TlsServer>> TlsServer::make(const Options& options,
                                                         Identities identities,
                                                         const TlsServer* before) {
  ENCORE_CHECK(!identities.empty() && options.tickets != nullptr,
               "a TLS server has a certificate and keys for tickets");
  ERR_clear_error();
  std::shared_ptr<TlsServer> server(new TlsServer(options, std::move(identities)));
  auto made = server->make_contexts(options, before);
  ERR_clear_error();
  if (!made) return std::unexpected(made.error());
  return server;
}

Result<std::shared_ptr<const TlsServer>> TlsServer::create_for(
    const Options& options, evp_pkey_st& key, const std::vector<std::string>& chain) {
  TlsIdentity identity;
  EVP_PKEY_up_ref(&key);
  identity.key.reset(&key);
  identity.chain.reset(sk_X509_new_null());
  for (const std::string& der : chain) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
    OpenSsl<X509> each(d2i_X509(nullptr, &bytes, static_cast<long>(der.size())));
    if (each == nullptr || sk_X509_push(identity.chain.get(), each.get()) <= 0) {
      return openssl_fault("a chain of certificates");
    }
    (void)each.release();
  }
  return make(options, {std::make_shared<const TlsIdentity>(std::move(identity))});
}

// Which answer for a name: the first of each kind of key. A stand-in answers for no name that a
// real certificate has: a client that cannot use the kind of key of the one would get the other.
Result<void> TlsServer::make_contexts(const Options& options, const TlsServer* before) {
  const auto context_of = [&](const std::vector<std::size_t>& members) -> Result<const Context*> {
    std::unique_ptr<Context>& known = contexts_[members];
    if (known == nullptr) {
      auto made = make_context(options, members, before);
      if (!made) return std::unexpected(made.error());
      known = std::move(*made);
    }
    return known.get();
  };
  for (const bool stand_ins : {false, true}) {
    std::map<std::string, std::vector<std::size_t>> members_of;
    for (std::size_t i = 0; i < identities_.size(); ++i) {
      const TlsIdentity& each = *identities_[i];
      if (each.is_stand_in != stand_ins) continue;
      for (const std::string& name : each.names) {
        if (stand_ins && find_exact_or_wild(name) != nullptr) continue;
        std::vector<std::size_t>& members = members_of[name];
        const bool known = std::ranges::any_of(members, [&](std::size_t other) {
          return identities_[other]->key_type == each.key_type;
        });
        if (!known) members.push_back(i);
      }
    }
    for (const auto& [name, members] : members_of) {
      auto context = context_of(members);
      if (!context) return std::unexpected(context.error());
      by_name_.emplace(name, *context);
    }
  }
  const auto real = std::ranges::find(identities_, false, &TlsIdentity::is_stand_in);
  const std::size_t place =
      real == identities_.end() ? 0 : static_cast<std::size_t>(real - identities_.begin());
  const auto& names = identities_[place]->names;
  if (!names.empty()) {
    first_ = by_name_.at(names.front());
    return {};
  }
  auto first = context_of({place});
  if (!first) return std::unexpected(first.error());
  first_ = *first;
  return {};
}

Result<std::unique_ptr<TlsServer::Context>> TlsServer::make_context(
    const Options& options, const std::vector<std::size_t>& members,
    const TlsServer* before) const {
  auto context = std::make_unique<Context>();
  context->ssl.reset(new_context(TLS_server_method()));
  context->server = this;
  SSL_CTX* const ssl = context->ssl.get();
  if (ssl == nullptr) return openssl_fault("TLS");
  if (auto set = set_protocol(ssl, options); !set) return std::unexpected(set.error());
  const SSL_CTX* const from = before == nullptr ? nullptr : before->first_->ssl.get();
  if (auto set = set_client_verify(ssl, options, from); !set) return std::unexpected(set.error());
  for (const std::size_t place : members) {
    const TlsIdentity& each = *identities_[place];
    if (each.certificate == nullptr) {
      if (SSL_CTX_use_PrivateKey(ssl, each.key.get()) != 1) return openssl_fault("TLS");
      for (int i = 0; i < sk_X509_num(each.chain.get()); ++i) {
        X509* const above = sk_X509_value(each.chain.get(), i);
        if (SSL_CTX_add_extra_chain_cert(ssl, above) != 1) return openssl_fault("TLS");
        X509_up_ref(above);  // the context has taken one
      }
      continue;
    }
    context->members.push_back(&each);
    if (SSL_CTX_use_cert_and_key(ssl, each.certificate.get(), each.key.get(), each.chain.get(),
                                 1) != 1) {
      return openssl_fault("certificate \"" + each.files.certificate + "\"");
    }
  }
  if (auto set = set_session_context(ssl, options, context->members); !set) {
    return std::unexpected(set.error());
  }
  if (auto set = set_callbacks(*context); !set) return std::unexpected(set.error());
  return context;
}

const TlsServer::Context* TlsServer::find_exact_or_wild(std::string_view name) const {
  std::string text(name);
  auto found = by_name_.find(text);
  if (found == by_name_.end()) {
    // One label stands for the star (RFC 6125 6.4.3).
    const std::size_t dot = text.find('.');
    if (dot != std::string::npos && dot != 0) {
      found = by_name_.find(text.replace(0, dot, "*"));
    }
  }
  return found == by_name_.end() ? nullptr : found->second;
}

const TlsServer::Context* TlsServer::find(std::string_view name) const {
  if (name.empty()) return first_;
  const Context* const found = find_exact_or_wild(name);
  if (found != nullptr || refuse_unknown_name_) return found;
  return first_;
}

TlsSessionPointer TlsServer::session() const {
  SSL* const ssl = SSL_new(first_->ssl.get());
  if (ssl == nullptr) return nullptr;
  return TlsSessionPointer(new TlsSession(shared_from_this(), ssl, TlsSession::Side::kServer));
}

TlsSessionPointer TlsServer::session_showing(std::string_view certificate) const {
  ERR_clear_error();
  OpenSsl<SSL> ssl(SSL_new(first_->ssl.get()));
  if (ssl == nullptr) return nullptr;
  const auto* const der = reinterpret_cast<const unsigned char*>(certificate.data());
  // One of another key would drop ours.
  const bool shown =
      SSL_use_certificate_ASN1(ssl.get(), der, static_cast<int>(certificate.size())) == 1 &&
      SSL_check_private_key(ssl.get()) == 1;
  ERR_clear_error();
  if (!shown) return nullptr;
  return TlsSessionPointer(
      new TlsSession(shared_from_this(), ssl.release(), TlsSession::Side::kServer));
}

}  // namespace encore::net
