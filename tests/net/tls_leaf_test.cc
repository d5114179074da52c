// A TLS server that receives with each session the certificate to show.
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "proxy/net/tls_server.h"
#include "proxy/net/tls_session.h"
#include "tests/catch.h"
#include "tests/net/certificates.h"
#include "tests/net/net_test_support.h"

namespace encore::net {
namespace {

template <typename T, auto kFree>
struct Freed {
  void operator()(T* it) const { kFree(it); }
};
using LeafKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, &EVP_PKEY_free>>;
using LeafCertificate = std::unique_ptr<X509, Freed<X509, &X509_free>>;
using ClientContext = std::unique_ptr<SSL_CTX, Freed<SSL_CTX, &SSL_CTX_free>>;
using ClientSsl = std::unique_ptr<SSL, Freed<SSL, &SSL_free>>;

// A certificate for this name, of this key, signed by itself.
std::string certificate_for(const std::string& name, EVP_PKEY* key) {
  const LeafCertificate made(X509_new());
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made.get(), X509_get_subject_name(made.get()));
  X509_set_pubkey(made.get(), key);
  X509_sign(made.get(), key, EVP_sha256());
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(made.get(), &bytes);
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

std::shared_ptr<const TlsServer> server_for(EVP_PKEY& key) {
  auto tickets = TlsTickets::create(monotonic_now());
  REQUIRE(tickets.has_value());
  auto server = TlsServer::create_for({.tickets = *tickets, .now = wall_now()}, key, {});
  REQUIRE(server.has_value());
  return *server;
}

// The name that a client is shown; empty: the handshake failed. A client that verifies refuses it.
std::string shown(TlsSession& session, int verify = SSL_VERIFY_NONE) {
  SocketPair pair;
  const ClientContext context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_verify(context.get(), verify, nullptr);
  const ClientSsl client(SSL_new(context.get()));
  SSL_set_fd(client.get(), pair.far.get());
  SSL_set_connect_state(client.get());
  SSL_set_tlsext_host_name(client.get(), "said.test");
  REQUIRE(session.attach(pair.near.get()));
  TlsResult ours{.status = TlsStatus::kWantRead};
  for (int i = 0; i < 50 && ours.status == TlsStatus::kWantRead; ++i) {
    (void)SSL_do_handshake(client.get());
    ours = session.handshake();
  }
  if (ours.status != TlsStatus::kOk) return {};
  const X509* const certificate = SSL_get0_peer_certificate(client.get());
  REQUIRE(certificate != nullptr);
  std::string name(100, '\0');
  const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                             name.data(), static_cast<int>(name.size()));
  name.resize(static_cast<std::size_t>(size));
  return name;
}

}  // namespace

TEST_CASE("a session shows the certificate that it is made with", "[net][tls]") {
  const LeafKey key(EVP_EC_gen("P-256"));
  const auto server = server_for(*key);
  for (const std::string name : {"a.test", "b.test", "a.test"}) {
    const auto session = server->session_showing(certificate_for(name, key.get()));
    REQUIRE(session != nullptr);
    CHECK(shown(*session) == name);
  }
}

TEST_CASE("a session shows no certificate of another key, and nothing that is none", "[net][tls]") {
  const LeafKey key(EVP_EC_gen("P-256"));
  const LeafKey other(EVP_EC_gen("P-256"));
  const auto server = server_for(*key);
  const std::string good = certificate_for("a.test", key.get());
  CHECK(server->session_showing(certificate_for("a.test", other.get())) == nullptr);
  CHECK(server->session_showing("") == nullptr);
  CHECK(server->session_showing("garbage") == nullptr);
  CHECK(server->session_showing(good.substr(0, good.size() / 2)) == nullptr);
  // A refused certificate has changed nothing.
  const auto session = server->session_showing(good);
  REQUIRE(session != nullptr);
  CHECK(shown(*session) == "a.test");
}

TEST_CASE("a session knows that its client has refused what it was shown", "[net][tls]") {
  const LeafKey key(EVP_EC_gen("P-256"));
  const auto server = server_for(*key);
  const auto session = server->session_showing(certificate_for("a.test", key.get()));
  REQUIRE(session != nullptr);
  CHECK(shown(*session, SSL_VERIFY_PEER).empty());
  CHECK(session->is_refused_by_peer());
  CHECK(session->certificate_fault().empty());
}

}  // namespace encore::net
