#include "proxy/settings/intercept_rules.h"

#include <set>

#include "tests/catch.h"

namespace encore::server {
namespace {

using tls::ClientHello;
using tls::HelloStatus;

config::Intercept some() {
  config::Intercept intercept;
  intercept.ca_certificate = "ca.crt";
  intercept.ca_key = "ca.key";
  intercept.hosts = {"a.example", "*.b.example"};
  intercept.never = {"bank.b.example", "*.bank.b.example"};
  return intercept;
}

Splice connect_at(const InterceptRules& rules, std::string_view host, std::uint16_t port = 443) {
  return rules.at_connect({.host = host, .port = port});
}

ClientHello hello_for(const std::string& name) {
  return {.server_name = name, .protocols = {"h2", "http/1.1"}, .versions = {tls::kTls13}};
}

Splice said(const ClientHello& hello, HelloStatus status = HelloStatus::kComplete) {
  return InterceptRules::at_hello("a.example", status, hello);
}

}  // namespace

TEST_CASE("What is named is decrypted, and nothing else", "[settings][intercept]") {
  const InterceptRules rules(some());
  CHECK(connect_at(rules, "a.example") == Splice::kNone);
  CHECK(connect_at(rules, "x.b.example") == Splice::kNone);
  CHECK(connect_at(rules, "y.x.b.example") == Splice::kNone);
  CHECK(connect_at(rules, "b.example") == Splice::kNotNamed);
  CHECK(connect_at(rules, "x.a.example") == Splice::kNotNamed);
  CHECK(connect_at(rules, "nota.example") == Splice::kNotNamed);
  CHECK(connect_at(rules, "a.example.org") == Splice::kNotNamed);
  CHECK(connect_at(rules, "bank.b.example") == Splice::kNever);
  CHECK(connect_at(rules, "x.bank.b.example") == Splice::kNever);
  CHECK(connect_at(rules, "xbank.b.example") == Splice::kNone);
  CHECK(connect_at(rules, "a.example", 8443) == Splice::kPort);
  CHECK(connect_at(rules, "127.0.0.1") == Splice::kAddress);
  CHECK(connect_at(rules, "::1") == Splice::kAddress);
  CHECK(connect_at(rules, "2130706433") == Splice::kAddress);
  CHECK(connect_at(rules, "a.example.") == Splice::kAddress);
  CHECK(connect_at(InterceptRules(config::Intercept()), "a.example") == Splice::kNotNamed);
}

TEST_CASE("Neither a listener of ours nor who rejects is decrypted", "[settings][intercept]") {
  const InterceptRules rules(some());
  CHECK(rules.at_connect({.host = "a.example", .port = 443, .is_own = true}) == Splice::kOwn);
  CHECK(rules.at_connect({.host = "a.example", .port = 443, .is_rejected = true}) ==
        Splice::kRejected);
}

TEST_CASE("All facts together give what each of them allows", "[settings][intercept]") {
  // The oracle: nothing stands against it, by sets of names written out.
  const std::set<std::string> named = {"a.example", "x.b.example", "bank.b.example"};
  const std::set<std::string> never = {"bank.b.example"};
  const InterceptRules rules(some());
  for (const std::string host :
       {"a.example", "b.example", "x.b.example", "bank.b.example", "c.example", "10.0.0.1"}) {
    for (const std::uint16_t port : {std::uint16_t{443}, std::uint16_t{80}}) {
      for (const bool is_own : {false, true}) {
        for (const bool is_rejected : {false, true}) {
          CAPTURE(host, port, is_own, is_rejected);
          const bool allowed = named.contains(host) && !never.contains(host) && port == 443 &&
                               !is_own && !is_rejected;
          CHECK((rules.at_connect({host, port, is_own, is_rejected}) == Splice::kNone) == allowed);
        }
      }
    }
  }
}

TEST_CASE("A client that speaks TLS to the host it connects to is decrypted",
          "[settings][intercept]") {
  CHECK(said(hello_for("a.example")) == Splice::kNone);
  CHECK(said({.server_name = "a.example", .protocols = {}, .versions = {tls::kTls12}}) ==
        Splice::kNone);
}

TEST_CASE("Whatever else a client says is left as it is", "[settings][intercept]") {
  CHECK(said({}, HelloStatus::kNotTls) == Splice::kNotTls);
  CHECK(said({}, HelloStatus::kMalformed) == Splice::kMalformed);
  CHECK(said(hello_for("")) == Splice::kNoName);
  // Domain fronting: what is asked for inside is another matter than what was connected to.
  CHECK(said(hello_for("b.example")) == Splice::kOtherName);
  CHECK(said(hello_for("x.a.example")) == Splice::kOtherName);
  ClientHello hello = hello_for("a.example");
  hello.versions = {0x0301, 0x0302};
  CHECK(said(hello) == Splice::kOldVersion);
  hello = hello_for("a.example");
  hello.protocols = {"h2"};
  CHECK(said(hello) == Splice::kOtherProtocol);
  hello.protocols = {"acme-tls/1"};
  CHECK(said(hello) == Splice::kOtherProtocol);
}

TEST_CASE("Who speaks the older HTTP alone is decrypted as well", "[settings][intercept]") {
  ClientHello hello = hello_for("a.example");
  hello.protocols = {"http/1.0"};
  CHECK(said(hello) == Splice::kNone);
  hello.protocols = {"h2", "http/1.0"};
  CHECK(said(hello) == Splice::kNone);
}

TEST_CASE("Each reason has a name of its own", "[settings][intercept]") {
  const std::set<std::string_view> names(kSpliceNames.begin(), kSpliceNames.end());
  CHECK(names.size() == kSpliceNames.size());
  CHECK(to_string(Splice::kNone) == "intercepted");
  CHECK(to_string(Splice::kOtherProtocol) == "other-protocol");
}

}  // namespace encore::server
