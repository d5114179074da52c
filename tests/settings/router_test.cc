#include "proxy/settings/router.h"

#include <string>
#include <vector>

#include "tests/catch.h"

namespace encore::server {
namespace {

config::Origin origin(std::string host, std::string path, std::string server) {
  config::Origin made;
  made.host = std::move(host);
  made.path = std::move(path);
  made.servers = {std::move(server)};
  return made;
}

Router make_router(std::vector<config::Origin> origins) {
  config::Config config;
  config.origin = std::move(origins);
  auto router = Router::create(config);
  REQUIRE(router.has_value());
  return std::move(*router);
}

std::string answer(const Router& router, std::string_view host, std::string_view path) {
  const Route* route = router.match(host, path);
  for (const char* rest : {"", "?a=b/c", "?"}) {
    const std::string uri = "http://" + std::string(host) + ":8080" + std::string(path) + rest;
    INFO(uri);
    CHECK(router.match_uri(uri) == route);
  }
  return route == nullptr ? "none" : route->group().servers().front().authority;
}

TEST_CASE("the most specific host wins, then the longest path, in any order of the file",
          "[server][router]") {
  std::vector<config::Origin> origins = {
      origin("*", "/", "http://any:1"),
      origin("*", "/deep/", "http://any-deep:1"),
      origin("*.example.com", "/", "http://below:1"),
      origin("*.a.example.com", "/", "http://below-a:1"),
      origin("www.example.com", "/", "http://www:1"),
      origin("www.example.com", "/static/", "http://static:1"),
  };
  for (int turn = 0; turn < 2; ++turn) {
    const Router router = make_router(origins);
    CHECK(answer(router, "www.example.com", "/") == "www:1");
    CHECK(answer(router, "www.example.com", "/static/x") == "static:1");
    CHECK(answer(router, "www.example.com", "/static") == "www:1");
    CHECK(answer(router, "www.example.com", "/deep/x") == "www:1");
    CHECK(answer(router, "x.example.com", "/") == "below:1");
    CHECK(answer(router, "x.y.a.example.com", "/") == "below-a:1");
    CHECK(answer(router, "example.com", "/") == "any:1");
    CHECK(answer(router, "badexample.com", "/deep/x") == "any-deep:1");
    std::ranges::reverse(origins);
  }
}

TEST_CASE("without a matching route there is none", "[server][router]") {
  const Router router = make_router({origin("a.test", "/only/", "http://a:1")});
  CHECK(answer(router, "a.test", "/other") == "none");
  CHECK(answer(router, "b.test", "/only/") == "none");
}

TEST_CASE("a route for all takes all, one for all hosts or all paths does not",
          "[server][router]") {
  CHECK(answer(make_router({origin("*", "/", "http://a:1")}), "x.test", "/y") == "a:1");
  CHECK(answer(make_router({origin("*", "/only/", "http://a:1")}), "x.test", "/y") == "none");
  CHECK(answer(make_router({origin("b.test", "/", "http://a:1")}), "x.test", "/y") == "none");
  const Router two =
      make_router({origin("*", "/", "http://a:1"), origin("*", "/only/", "http://b:1")});
  CHECK(answer(two, "x.test", "/only/y") == "b:1");
  CHECK(answer(two, "x.test", "/y") == "a:1");
}

TEST_CASE("default ports are left out and IPv6 is bracketed", "[server][router]") {
  config::Origin several = origin("*", "/", "http://10.0.0.1:80");
  several.servers.emplace_back("http://[::1]:8080");
  const Router router = make_router({several});
  const auto& servers = router.match("x", "/")->group().servers();
  CHECK(servers.at(0).authority == "10.0.0.1");
  CHECK(servers.at(1).authority == "[::1]:8080");
}

TEST_CASE("realms keep routes and the forward side apart, and last over restarts",
          "[server][router]") {
  const std::vector<config::Origin> origins = {origin("a", "/", "http://s:1"),
                                               origin("a", "/b/", "http://s:1"),
                                               origin("b", "/", "http://s:1")};
  const Router router = make_router(origins);
  const Router again = make_router({origins[2], origins[1], origins[0]});
  const std::string first = router.match("a", "/")->realm();
  CHECK(first.size() == kRealmBytes);
  CHECK(first != kForwardRealm);
  CHECK(first != router.match("a", "/b/")->realm());
  CHECK(first != router.match("b", "/")->realm());
  CHECK(first == again.match("a", "/")->realm());
}

TEST_CASE("connections under different verification are pooled apart", "[server][router]") {
  config::Origin strict = origin("a", "/", "https://s:1");
  config::Origin lax = origin("b", "/", "https://s:1");
  lax.tls_verify = false;
  config::Origin named = origin("c", "/", "https://s:1");
  named.tls_server_name = "other";
  const Router router = make_router({strict, lax, named});
  const auto key = [&](std::string_view host) {
    return router.match(host, "/")->group().servers().front().pool_key;
  };
  CHECK(key("a") != key("b"));
  CHECK(key("a") != key("c"));
}

TEST_CASE("a certificate file that cannot be read is named", "[server][router]") {
  config::Config config;
  config::Origin bad = origin("*", "/", "https://s:1");
  bad.tls_ca_file = "/nonexistent/ca.pem";
  config.origin = {bad};
  const auto router = Router::create(config);
  REQUIRE_FALSE(router.has_value());
  CHECK(router.error().message.find("/nonexistent/ca.pem") != std::string::npos);
}

TEST_CASE("hosts that are asked by https are named by patterns", "[server][router]") {
  config::Config config;
  config.forward.https = {"a.example", "*.b.example"};
  const auto router = Router::create(config);
  REQUIRE(router);
  for (const std::string_view host : {"a.example", "x.b.example", "y.x.b.example"}) {
    CHECK(router->asks_by_https(host));
  }
  for (const std::string_view host : {"b.example", "xb.example", "x.a.example", ""}) {
    CHECK_FALSE(router->asks_by_https(host));
  }
}

}  // namespace
}  // namespace encore::server
