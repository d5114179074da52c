// ClientIdentity: the client by the PROXY header, trusted proxies and TLS.
#include "proxy/intake/client_identity.h"

#include <memory>
#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

using Header = ClientIdentity::Header;

net::Address client_ip(const char* ip) { return net::Address::parse_ip(ip, 1).value(); }

std::unique_ptr<const ListenerPolicy> policy_with(std::vector<config::CidrText> trusted,
                                                  bool proxy_protocol = true) {
  config::Listen listen;
  listen.trusted_proxies = std::move(trusted);
  listen.proxy_protocol = proxy_protocol;
  return ListenerPolicy::make(listen).value();
}

struct Identity {
  explicit Identity(const char* peer = "10.0.0.1") : identity(client_ip(peer), [] {}) {}
  // Returns the client's address.
  std::string identify(const ListenerPolicy* policy, std::string_view forwarded_for = {},
                       bool secure = false) {
    http::Fields fields;
    if (!forwarded_for.empty()) fields.add("X-Forwarded-For", forwarded_for);
    fields.add("X-Forwarded-Proto", "https");
    view = {};
    view.secure = secure;
    identity.identify(policy, fields, view);
    return identity.client().ip_string();
  }
  std::string id(const ListenerPolicy* policy, std::initializer_list<const char*> ids) {
    http::RequestHead head;
    for (const char* each : ids) head.fields.add("X-Request-Id", each);
    return std::string(identity.request_id(makes, policy, &head));
  }

  ClientIdentity identity;
  RequestView view;
  RequestIds makes;
};

constexpr std::string_view kMore = "PROXY TCP4 192.0.2.7 192.0.2.8 1000 443\r\nGET";
constexpr std::string_view kHeader = kMore.substr(0, kMore.size() - 3);

}  // namespace

TEST_CASE("a PROXY header names the client of all requests", "[intake][identity]") {
  const auto policy = policy_with({"10.0.0.0/8"});
  Identity client;
  CHECK_FALSE(client.identity.awaits_header());
  client.identity.await_header();
  CHECK(client.identity.awaits_header());
  CHECK(client.identity.take_header(*policy, kHeader.substr(0, 20)).header == Header::kIncomplete);
  const auto taken = client.identity.take_header(*policy, kMore);
  CHECK(taken.header == Header::kTaken);
  CHECK(taken.used == kHeader.size());
  CHECK_FALSE(client.identity.awaits_header());
  CHECK(client.identity.from().ip_string() == "192.0.2.7");
  CHECK(client.identity.client().ip_string() == "192.0.2.7");
  // It is no trusted proxy, and speaks for itself alone.
  CHECK(client.identify(policy.get(), "198.51.100.1") == "192.0.2.7");
  CHECK_FALSE(client.view.through_proxy);
  CHECK_FALSE(client.view.secure);
  CHECK(client.identify(nullptr) == "192.0.2.7");
}

TEST_CASE("a PROXY header is believed of trusted proxies", "[intake][identity]") {
  const auto policy = policy_with({"10.0.0.0/8"});
  Identity stranger("192.0.2.1");
  stranger.identity.await_header();
  CHECK(stranger.identity.take_header(*policy, kHeader).header == Header::kRefused);
  Identity bad;
  bad.identity.await_header();
  CHECK(bad.identity.take_header(*policy, "GET / HTTP/1.1\r\n\r\n").header == Header::kRefused);
  // With nobody named, of all.
  Identity any("192.0.2.1");
  any.identity.await_header();
  CHECK(any.identity.take_header(*policy_with({}), kHeader).header == Header::kTaken);
}

TEST_CASE("a trusted proxy names the client of each request", "[intake][identity]") {
  const auto policy = policy_with({"10.0.0.0/8"}, false);
  Identity proxy;
  CHECK_FALSE(proxy.identity.may_change());
  CHECK(proxy.identify(policy.get(), "192.0.2.1") == "192.0.2.1");
  CHECK(proxy.view.through_proxy);
  CHECK(proxy.view.secure);
  CHECK(proxy.view.policy == policy.get());
  CHECK(proxy.identity.may_change());
  CHECK(proxy.identity.from().ip_string() == "10.0.0.1");
  CHECK(proxy.identify(policy.get(), "192.0.2.2") == "192.0.2.2");
  // A reload no longer trusts it.
  CHECK(proxy.identify(nullptr, "192.0.2.3") == "10.0.0.1");
  CHECK_FALSE(proxy.view.through_proxy);
  CHECK_FALSE(proxy.view.secure);
  CHECK(proxy.view.policy == nullptr);
  CHECK(proxy.identity.may_change());
}

TEST_CASE("the connection's own TLS counts where no proxy speaks for its client",
          "[intake][identity]") {
  Identity client("192.0.2.1");
  CHECK(client.identify(nullptr) == "192.0.2.1");
  CHECK(client.view.tls == nullptr);
  ClientTls tls;
  tls.version = "TLSv1.3";
  client.identity.set_tls(std::make_shared<const ClientTls>(tls));
  (void)client.identify(nullptr, {}, true);
  CHECK(client.view.secure);
  REQUIRE(client.view.tls != nullptr);
  CHECK((*client.view.tls)->version == "TLSv1.3");
  CHECK(client.identity.tls() == client.view.tls->get());
}

TEST_CASE("requests inside a CONNECT are of its client, whatever they say", "[intake][identity]") {
  const auto policy = policy_with({"10.0.0.0/8"}, false);
  Identity client;
  CHECK(client.identify(policy.get(), "192.0.2.1") == "192.0.2.1");
  client.identity.enter({.host = "h", .port = 443});
  CHECK(client.identify(policy.get(), "192.0.2.2", true) == "192.0.2.1");
  CHECK(client.view.inside == client.identity.inside());
  CHECK(client.view.policy == policy.get());
  CHECK(client.view.secure);
  CHECK_FALSE(client.view.through_proxy);
  CHECK_FALSE(client.identity.may_change());
  CHECK(client.id(policy.get(), {"theirs"}).size() == 32);
}

TEST_CASE("a trusted proxy names requests", "[intake][identity]") {
  const auto policy = policy_with({"10.0.0.0/8"}, false);
  Identity proxy;
  CHECK(proxy.id(policy.get(), {"a-1"}) == "a-1");
  CHECK(proxy.id(policy.get(), {}).size() == 32);
  CHECK(proxy.id(policy.get(), {"a", "b"}).size() == 32);
  CHECK(proxy.id(policy.get(), {"not one"}).size() == 32);
  CHECK(proxy.id(nullptr, {"a-1"}).size() == 32);
  CHECK(proxy.identity.request_id(proxy.makes, policy.get(), nullptr).size() == 32);
  Identity stranger("192.0.2.1");
  CHECK(stranger.id(policy.get(), {"a-1"}).size() == 32);
}

}  // namespace encore::server
