#include "proxy/net/tls_server.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "proxy/net/tls_context.h"
#include "proxy/net/tls_internal.h"
#include "proxy/net/tls_session.h"

namespace encore::net {
namespace {

// With TLS 1.2 only what has forward secrecy and authenticates what it encrypts. The server's order
// counts, but for clients that have no instructions for AES and say so by theirs.
constexpr const char* kCiphers12 = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr const char* kCiphers13 =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr const char* kGroups = "X25519:P-256";
// Of what is in a ticket, in seconds.
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

Result<void> set_client_verify(SSL_CTX* ssl, const TlsServer::Options& options) {
  if (options.client_verify == TlsServer::ClientVerify::kOff) return {};
  const std::string& file = options.client_ca_file;
  STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(file.c_str());
  if (names == nullptr || SSL_CTX_load_verify_file(ssl, file.c_str()) != 1) {
    sk_X509_NAME_pop_free(names, &X509_NAME_free);
    return openssl_fault("certificates of authorities in \"" + file + "\"");
  }
  SSL_CTX_set_client_CA_list(ssl, names);
  const bool required = options.client_verify == TlsServer::ClientVerify::kRequire;
  SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                     nullptr);
  return {};
}

// What a ticket is good for: the same names, and the same authorities of clients. With another set
// of either its client begins anew, so that none comes past a check that it would not pass, and
// nobody leads it to another site of ours. A certificate that is renewed changes nothing.
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

TlsServer::TlsServer(const Options& options, std::vector<TlsIdentity> identities)
    : identities_(std::move(identities)),
      tickets_(options.tickets),
      alpn_(wire_format(options.alpn)),
      refuse_unknown_name_(options.refuse_unknown_name) {
  for (const TlsIdentity& each : identities_) {
    certificates_.push_back(
        {.file = each.certificate_file, .names = each.names, .not_after = each.not_after});
  }
}

TlsServer::~TlsServer() = default;

Result<std::shared_ptr<const TlsServer>> TlsServer::create(const Options& options) {
  std::vector<TlsIdentity> identities;
  for (const Pair& pair : options.pairs) {
    auto identity = TlsIdentity::load(pair, options.now);
    if (!identity) return std::unexpected(identity.error());
    identities.push_back(std::move(*identity));
  }
  return create(options, std::move(identities));
}

Result<std::shared_ptr<const TlsServer>> TlsServer::create(const Options& options,
                                                           std::vector<TlsIdentity> identities) {
  ENCORE_CHECK(!identities.empty() && options.tickets != nullptr,
               "a TLS server has a certificate and keys for tickets");
  ERR_clear_error();
  std::shared_ptr<TlsServer> server(new TlsServer(options, std::move(identities)));
  auto made = server->make_contexts(options);
  ERR_clear_error();
  if (!made) return std::unexpected(made.error());
  return server;
}

Result<void> TlsServer::make_contexts(const Options& options) {
  // Which answer for a name: the first of each kind of key.
  std::map<std::string, std::vector<std::size_t>> members_of;
  for (std::size_t i = 0; i < identities_.size(); ++i) {
    for (const std::string& name : identities_[i].names) {
      std::vector<std::size_t>& members = members_of[name];
      const bool known = std::ranges::any_of(members, [&](std::size_t other) {
        return identities_[other].key_type == identities_[i].key_type;
      });
      if (!known) members.push_back(i);
    }
  }
  const auto context_of = [&](const std::vector<std::size_t>& members) -> Result<const Context*> {
    std::unique_ptr<Context>& known = contexts_[members];
    if (known == nullptr) {
      auto made = make_context(options, members);
      if (!made) return std::unexpected(made.error());
      known = std::move(*made);
    }
    return known.get();
  };
  for (const auto& [name, members] : members_of) {
    auto context = context_of(members);
    if (!context) return std::unexpected(context.error());
    by_name_.emplace(name, *context);
  }
  const auto& names = identities_.front().names;
  auto first = context_of(names.empty() ? std::vector<std::size_t>{0} : members_of[names.front()]);
  if (!first) return std::unexpected(first.error());
  first_ = *first;
  return {};
}

Result<std::unique_ptr<TlsServer::Context>> TlsServer::make_context(
    const Options& options, const std::vector<std::size_t>& members) const {
  auto context = std::make_unique<Context>();
  context->ssl.reset(new_context(TLS_server_method()));
  context->server = this;
  SSL_CTX* const ssl = context->ssl.get();
  if (ssl == nullptr) return openssl_fault("TLS");
  if (auto set = set_protocol(ssl, options); !set) return std::unexpected(set.error());
  if (auto set = set_client_verify(ssl, options); !set) return std::unexpected(set.error());
  for (const std::size_t place : members) {
    const TlsIdentity& each = identities_[place];
    context->members.push_back(&each);
    if (SSL_CTX_use_cert_and_key(ssl, each.certificate.get(), each.key.get(), each.chain.get(),
                                 1) != 1) {
      return openssl_fault("certificate \"" + each.certificate_file + "\"");
    }
  }
  if (auto set = set_session_context(ssl, options, context->members); !set) {
    return std::unexpected(set.error());
  }
  if (auto set = set_callbacks(*context); !set) return std::unexpected(set.error());
  return context;
}

const TlsServer::Context* TlsServer::find(std::string_view name) const {
  if (name.empty()) return first_;
  std::string text(name);
  auto found = by_name_.find(text);
  if (found == by_name_.end()) {
    // One label stands for the star (RFC 6125 6.4.3).
    const std::size_t dot = text.find('.');
    if (dot != std::string::npos && dot != 0) {
      found = by_name_.find(text.replace(0, dot, "*"));
    }
  }
  if (found != by_name_.end()) return found->second;
  return refuse_unknown_name_ ? nullptr : first_;
}

TlsSessionPointer TlsServer::session() const {
  SSL* const ssl = SSL_new(first_->ssl.get());
  if (ssl == nullptr) return nullptr;
  return TlsSessionPointer(new TlsSession(shared_from_this(), ssl, TlsSession::Side::kServer));
}

}  // namespace encore::net
