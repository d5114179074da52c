#include "proxy/net/tls_server.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "proxy/net/tls_facts.h"
#include "proxy/net/tls_session.h"
#include "tests/catch.h"
#include "tests/net/certificates.h"
#include "tests/net/net_test_support.h"

namespace encore::net {
namespace {

using Server = std::shared_ptr<const TlsServer>;
using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using Ssl = std::unique_ptr<SSL, decltype(&SSL_free)>;
using Session = std::unique_ptr<SSL_SESSION, decltype(&SSL_SESSION_free)>;

std::shared_ptr<TlsTickets> tickets() {
  auto made = TlsTickets::create(monotonic_now());
  REQUIRE(made.has_value());
  return *made;
}

TlsServer::Options options_of(const std::vector<TestCertificates::Pair>& pairs) {
  TlsServer::Options options{.tickets = tickets(), .now = wall_now()};
  for (const auto& pair : pairs) options.pairs.push_back({pair.certificate, pair.key});
  return options;
}

Server serve(const TlsServer::Options& options) {
  auto server = TlsServer::create(options);
  if (!server) UNSCOPED_INFO(server.error().message);
  REQUIRE(server.has_value());
  return *server;
}

std::string refusal(const TlsServer::Options& options) {
  const auto server = TlsServer::create(options);
  REQUIRE_FALSE(server.has_value());
  return server.error().message;
}

// A client of OpenSSL's own, on a pair of sockets with a server's session.
class Peer {
 public:
  Peer() : context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free), ssl_(nullptr, &SSL_free) {}
  SSL_CTX* context() { return context_.get(); }
  SSL* ssl() { return ssl_.get(); }

  // True if neither side failed. Also reads the messages that the client received with the first
  // bytes.
  bool connect(const TlsServer& server, const std::string& name, SSL_SESSION* session = nullptr) {
    pair_.emplace();
    ssl_.reset(SSL_new(context()));
    SSL_set_fd(ssl(), pair_->far.get());
    SSL_set_connect_state(ssl());
    if (!name.empty()) SSL_set_tlsext_host_name(ssl(), name.c_str());
    if (session != nullptr) SSL_set_session(ssl(), session);
    SSL_set_tlsext_status_type(ssl(), TLSEXT_STATUSTYPE_ocsp);
    server_ = server.session();
    REQUIRE(server_->attach(pair_->near.get()));
    bool client_done = false;
    bool server_done = false;
    for (int i = 0; i < 50 && !(client_done && server_done); ++i) {
      ERR_clear_error();
      const int result = SSL_do_handshake(ssl());
      client_done = result == 1;
      const int why = SSL_get_error(ssl(), result);
      if (result != 1 && why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
        alert = ERR_GET_REASON(ERR_peek_error());
        return false;
      }
      if (server_done) continue;
      const TlsResult theirs = server_->handshake();
      server_done = theirs.status == TlsStatus::kOk;
      if (theirs.status == TlsStatus::kFailed) {
        // Reads the alert that the server sent.
        (void)SSL_do_handshake(ssl());
        char byte = 0;
        (void)SSL_read(ssl(), &byte, 1);
        alert = ERR_GET_REASON(ERR_peek_error());
        return false;
      }
    }
    char byte = 0;
    (void)SSL_read(ssl(), &byte, 1);  // the ticket of TLS 1.3
    return client_done && server_done;
  }

  std::string shown() const {
    X509* const leaf = SSL_get0_peer_certificate(ssl_.get());
    if (leaf == nullptr) return {};
    char text[256] = {};
    X509_NAME_get_text_by_NID(X509_get_subject_name(leaf), NID_commonName, text, sizeof text);
    return text;
  }
  bool resumed() const { return SSL_session_reused(ssl_.get()) == 1; }
  TlsFacts facts() const { return facts_of(server_->ssl()); }
  // Why the server has refused it.
  const std::string& refusal() const { return server_->error(); }
  // Ended by a word, so that it may be taken up again.
  Session session() {
    SSL_set_shutdown(ssl(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    return {SSL_get1_session(ssl()), &SSL_SESSION_free};
  }

  int alert = 0;

 private:
  Context context_;
  Ssl ssl_;
  std::optional<SocketPair> pair_;
  TlsSessionPointer server_;
};

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("the name that a client says chooses the certificate", "[net][tls]") {
  const auto first = certificates().make({.names = "DNS:one.test", .subject = "first"});
  const auto exact = certificates().make({.names = "DNS:www.two.test", .subject = "exact"});
  const auto wild = certificates().make({.names = "DNS:*.two.test", .subject = "wild"});
  const Server server = serve(options_of({first, exact, wild}));
  const auto shown_to = [&](const std::string& name) {
    Peer peer;
    REQUIRE(peer.connect(*server, name));
    CHECK(peer.facts().server_name == name);
    return peer.shown();
  };
  CHECK(shown_to("one.test") == "first");
  CHECK(shown_to("WWW.Two.Test") == "exact");
  CHECK(shown_to("other.two.test") == "wild");
  CHECK(shown_to("") == "first");
  // A star stands for one label, and the rest for nobody else.
  for (const char* unknown : {"two.test", "a.b.two.test", "three.test", "one.test.evil.test"}) {
    CHECK(shown_to(unknown) == "first");
  }
}

TEST_CASE("an unknown name may be refused, no name is not", "[net][tls]") {
  const auto only = certificates().make({.names = "DNS:one.test"});
  TlsServer::Options options = options_of({only});
  options.refuse_unknown_name = true;
  const Server server = serve(options);
  Peer peer;
  CHECK(peer.connect(*server, "one.test"));
  CHECK(peer.connect(*server, ""));
  CHECK_FALSE(peer.connect(*server, "two.test"));
  CHECK(peer.alert == SSL_R_TLSV1_UNRECOGNIZED_NAME);
  CHECK(peer.refusal() == "no certificate for \"two.test\"");
  CHECK_FALSE(peer.connect(*server, "two.test\n\"x"));
  CHECK(peer.refusal() == "no certificate for \"two.test??x\"");
}

TEST_CASE("of one name each client gets the kind of key that it can use", "[net][tls]") {
  const auto ecdsa = certificates().make({.names = "DNS:one.test", .subject = "ecdsa"});
  const auto rsa = certificates().make({.names = "DNS:one.test", .subject = "rsa", .rsa = true});
  const auto second = certificates().make({.names = "DNS:one.test", .subject = "second"});
  const Server server = serve(options_of({rsa, ecdsa, second}));
  for (const char* name : {"one.test", ""}) {
    Peer peer;
    REQUIRE(SSL_CTX_set1_sigalgs_list(peer.context(), "ECDSA+SHA256") == 1);
    REQUIRE(peer.connect(*server, name));
    CHECK(peer.shown() == "ecdsa");
    REQUIRE(SSL_CTX_set1_sigalgs_list(peer.context(), "RSA-PSS+SHA256:RSA+SHA256") == 1);
    REQUIRE(peer.connect(*server, name));
    CHECK(peer.shown() == "rsa");
  }
}

TEST_CASE("TLS 1.2 and 1.3 are spoken, what is older is not", "[net][tls]") {
  const auto pair = certificates().make({.names = "DNS:one.test"});
  TlsServer::Options options = options_of({pair});
  options.only_tls13 = GENERATE(false, true);
  const Server server = serve(options);
  const auto speaks = [&](int version) {
    Peer peer;
    SSL_CTX_set_security_level(peer.context(), 0);
    SSL_CTX_set_min_proto_version(peer.context(), version);
    SSL_CTX_set_max_proto_version(peer.context(), version);
    return peer.connect(*server, "one.test");
  };
  CHECK(speaks(TLS1_3_VERSION));
  CHECK(speaks(TLS1_2_VERSION) == !options.only_tls13);
  CHECK_FALSE(speaks(TLS1_1_VERSION));
  CHECK_FALSE(speaks(TLS1_VERSION));
}

TEST_CASE("protocols above TLS are chosen in our order, and others alone are refused",
          "[net][tls]") {
  const auto pair = certificates().make({.names = "DNS:one.test"});
  TlsServer::Options options = options_of({pair});
  options.alpn = {"http/1.1", "http/1.0"};
  const Server server = serve(options);
  Peer peer;
  const auto offer = [&](const std::string& wire) {
    SSL_CTX_set_alpn_protos(peer.context(), reinterpret_cast<const unsigned char*>(wire.data()),
                            static_cast<unsigned>(wire.size()));
    return peer.connect(*server, "one.test");
  };
  REQUIRE(offer("\x08http/1.0\x08http/1.1"));
  CHECK(peer.facts().alpn == "http/1.1");
  REQUIRE(offer("\x02h2\x08http/1.0"));
  CHECK(peer.facts().alpn == "http/1.0");
  CHECK_FALSE(offer("\x02h2"));
  CHECK(peer.alert == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
  REQUIRE(offer(""));
  CHECK(peer.facts().alpn.empty());
}

TEST_CASE("a ticket is taken up by another server with the same keys and names", "[net][tls]") {
  const int version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
  const auto one = certificates().make({.names = "DNS:one.test"});
  const auto renewed = certificates().make({.names = "DNS:one.test"});
  const auto two = certificates().make({.names = "DNS:two.test"});
  TlsServer::Options options = options_of({one, two});
  const Server before = serve(options);
  options.pairs = {{renewed.certificate, renewed.key}, {two.certificate, two.key}};
  const Server after = serve(options);
  options.tickets = tickets();
  const Server stranger = serve(options);
  Peer peer;
  SSL_CTX_set_max_proto_version(peer.context(), version);
  REQUIRE(peer.connect(*before, "one.test"));
  CHECK_FALSE(peer.resumed());
  const Session session = peer.session();
  REQUIRE(peer.connect(*after, "one.test", session.get()));
  CHECK(peer.resumed());
  CHECK(peer.facts().resumed);
  // With TLS 1.3 it receives another one each time.
  const Session next = peer.session();
  REQUIRE(peer.connect(*after, "one.test", next.get()));
  CHECK(peer.resumed());
  // A ticket of another site, or of other keys.
  REQUIRE(peer.connect(*after, "two.test", session.get()));
  CHECK_FALSE(peer.resumed());
  REQUIRE(peer.connect(*stranger, "one.test", session.get()));
  CHECK_FALSE(peer.resumed());
}

TEST_CASE("who shows a certificate is known by it, on a ticket too", "[net][tls]") {
  using Verify = TlsServer::ClientVerify;
  const int version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
  const auto pair = certificates().make({.names = "DNS:one.test"});
  const auto own = certificates().make({.names = "DNS:me.test", .subject = "who, I \n\xe4m"});
  const TestCertificates foreign;
  const auto stranger = foreign.make({.names = "DNS:you.test"});
  TlsServer::Options options = options_of({pair});
  const Server open = serve(options);
  options.client_ca_file = certificates().ca_file();
  options.client_verify = Verify::kRequest;
  const Server asking = serve(options);
  options.client_verify = Verify::kRequire;
  const Server requiring = serve(options);
  options.client_ca_file = foreign.ca_file();
  const Server of_others = serve(options);

  Peer nobody;
  SSL_CTX_set_max_proto_version(nobody.context(), version);
  REQUIRE(nobody.connect(*asking, "one.test"));
  CHECK(nobody.facts().subject.empty());
  const Session without = nobody.session();
  CHECK_FALSE(nobody.connect(*requiring, "one.test"));
  // A ticket from where nothing was asked opens nothing where it is.
  REQUIRE(nobody.connect(*open, "one.test"));
  const Session from_open = nobody.session();
  CHECK_FALSE(nobody.connect(*requiring, "one.test", from_open.get()));
  CHECK_FALSE(nobody.connect(*requiring, "one.test", without.get()));

  Peer me;
  SSL_CTX_set_max_proto_version(me.context(), version);
  SSL_CTX_use_certificate_chain_file(me.context(), own.certificate.c_str());
  SSL_CTX_use_PrivateKey_file(me.context(), own.key.c_str(), SSL_FILETYPE_PEM);
  REQUIRE(me.connect(*requiring, "one.test"));
  const TlsFacts facts = me.facts();
  CHECK(facts.subject == "CN=who\\, I \\0A\\C3\\A4m");
  CHECK(facts.fingerprint.size() == 64);
  const Session session = me.session();
  REQUIRE(me.connect(*requiring, "one.test", session.get()));
  CHECK(me.resumed());
  CHECK(me.facts().subject == facts.subject);
  CHECK(me.facts().fingerprint == facts.fingerprint);
  CHECK_FALSE(me.connect(*of_others, "one.test", session.get()));

  Peer other;
  SSL_CTX_set_max_proto_version(other.context(), version);
  SSL_CTX_use_certificate_chain_file(other.context(), stranger.certificate.c_str());
  SSL_CTX_use_PrivateKey_file(other.context(), stranger.key.c_str(), SSL_FILETYPE_PEM);
  CHECK_FALSE(other.connect(*requiring, "one.test"));
  CHECK_FALSE(other.connect(*asking, "one.test"));
}

TEST_CASE("files of certificates that are not right are refused by name and reason", "[net][tls]") {
  const auto good = certificates().make({.names = "DNS:one.test"});
  const auto other = certificates().make({.names = "DNS:two.test"});
  const auto old = certificates().make({.names = "DNS:old.test", .until_days = -1});
  const auto early =
      certificates().make({.names = "DNS:new.test", .from_days = 1, .until_days = 9});
  const std::string mixed = certificates().directory() + "/mixed.pem";
  const auto put = [&](const std::string& text) { std::ofstream(mixed) << text; };
  const auto says = [&](const std::string& certificate, const std::string& key,
                        const std::string& file, const std::string& why) {
    const std::string message = refusal(options_of({{certificate, key}}));
    CAPTURE(message);
    CHECK(message.find("\"" + file + "\"") != std::string::npos);
    CHECK(message.find(why) != std::string::npos);
  };
  says("/nowhere.pem", good.key, "/nowhere.pem", "cannot be read");
  says(good.certificate, "/nowhere.key", "/nowhere.key", "No such file");
  says(good.certificate, certificates().directory(), certificates().directory(), "regular");
  says(good.key, good.key, good.key, "contains no certificate");
  says(good.certificate, good.certificate, good.certificate, "others can read");
  says(good.certificate, other.key, other.key, "does not match the certificate");
  says(old.certificate, old.key, old.certificate, "has expired at 20");
  says(early.certificate, early.key, early.certificate, "is not valid before 20");
  const std::string ca = text_of(certificates().ca_file());
  put(ca + text_of(good.certificate));
  says(mixed, good.key, mixed, "that of the key is certificate 2 of the file");
  put(text_of(good.certificate) + text_of(other.certificate) + ca);
  says(mixed, good.key, mixed, "out of order: certificate 1 of the file was issued by \"CN=Encore");
  put(text_of(good.certificate) + ca.substr(0, ca.size() / 2));
  says(mixed, good.key, mixed, "certificate 2 of the file is damaged");
  std::string many = text_of(good.certificate);
  for (int i = 0; i < 16; ++i) many += ca;
  put(many);
  says(mixed, good.key, mixed, "more than 16");
  put(std::string(1024 * 1024 + 1, ' '));
  says(mixed, good.key, mixed, "larger than");
  // Nothing at all of it is out of order.
  put("Some words.\n" + text_of(good.certificate) + ca);
  CHECK(TlsServer::create(options_of({{mixed, good.key}})).has_value());
}

TEST_CASE("a key is taken from nobody who lets others read it", "[net][tls]") {
  const auto pair = certificates().make({.names = "DNS:one.test"});
  for (const mode_t mode : {0644U, 0604U, 0660U}) {
    REQUIRE(::chmod(pair.key.c_str(), mode) == 0);
    CHECK(refusal(options_of({pair})).find("others can read") != std::string::npos);
  }
  for (const mode_t mode : {0400U, 0600U, 0640U}) {
    REQUIRE(::chmod(pair.key.c_str(), mode) == 0);
    CHECK(TlsServer::create(options_of({pair})).has_value());
  }
}

TEST_CASE("what is said of certificates is names and their end", "[net][tls]") {
  const auto pair =
      certificates().make({.names = "DNS:One.Test,DNS:*.two.test,IP:127.0.0.1", .until_days = 3});
  const Server server = serve(options_of({pair}));
  REQUIRE(server->certificates().size() == 1);
  const TlsServer::Certificate& known = server->certificates().front();
  CHECK(known.file == pair.certificate);
  CHECK(known.names == std::vector<std::string>{"one.test", "*.two.test"});
  const auto left = known.not_after - wall_now();
  CHECK(left > std::chrono::hours(71));
  CHECK(left <= std::chrono::hours(72));
}

}  // namespace encore::net
