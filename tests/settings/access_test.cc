#include "proxy/settings/access.h"

#include "proxy/settings/path_readings.h"
#include "proxy/settings/rate_limits.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

net::Address client_ip(const char* text) { return net::Address::parse_ip(text, 0).value(); }

}  // namespace

TEST_CASE("a listener takes the clients that it allows and does not deny", "[settings][access]") {
  config::Listen listen;
  CHECK(Access(listen).allows_client(client_ip("192.0.2.1")));
  CHECK(Access(listen).allows_client(net::Address()));
  listen.deny_clients = {"192.0.2.128/25"};
  CHECK(Access(listen).allows_client(client_ip("192.0.2.127")));
  CHECK_FALSE(Access(listen).allows_client(client_ip("192.0.2.128")));
  CHECK_FALSE(Access(listen).allows_client(client_ip("::ffff:192.0.2.128")));
  // Nobody is in no list, and so is not let past one.
  CHECK_FALSE(Access(listen).allows_client(net::Address()));
  listen.allow_clients = {"192.0.2.0/24", "2001:db8::/32"};
  const Access both(listen);
  CHECK(both.allows_client(client_ip("192.0.2.1")));
  CHECK(both.allows_client(client_ip("2001:db8::1")));
  CHECK_FALSE(both.allows_client(client_ip("192.0.2.200")));
  CHECK_FALSE(both.allows_client(client_ip("192.0.3.1")));
  listen.allow_clients = {"0.0.0.0/0", "::/0"};
  CHECK_FALSE(Access(listen).allows_client(net::Address()));
}

TEST_CASE("a listener takes what it allows and does not deny", "[settings][access]") {
  config::Listen listen;
  const Named plain{.method = "GET", .host = "www.example.com", .path = "/a/b.css", .port = 80};
  CHECK(Access(listen).refusal(plain).empty());
  const auto with = [&](auto&& change) {
    config::Listen changed = listen;
    change(changed);
    return std::string(Access(changed).refusal(plain));
  };
  CHECK(with([](auto& l) { l.allow_hosts = {"*.Example.com"}; }).empty());
  CHECK(with([](auto& l) { l.allow_hosts = {"example.com"}; }) == "host-not-allowed");
  CHECK(with([](auto& l) { l.deny_hosts = {"www.*"}; }) == "host-not-allowed");
  CHECK(with([](auto& l) { l.allow_paths = {"/x/*", "*.css"}; }).empty());
  CHECK(with([](auto& l) { l.allow_paths = {"/a"}; }) == "path-not-allowed");
  CHECK(with([](auto& l) { l.deny_paths = {"/a/*"}; }) == "path-not-allowed");
  CHECK(with([](auto& l) { l.allow_methods = {"HEAD", "GET"}; }).empty());
  CHECK(with([](auto& l) { l.allow_methods = {"get"}; }) == "method-not-allowed");
  CHECK(with([](auto& l) { l.allow_ports = {"1-79", "80"}; }).empty());
  CHECK(with([](auto& l) { l.allow_ports = {"81-65535"}; }) == "port-not-allowed");
  // CONNECT has no path: one that would have to be allowed is not.
  listen.allow_paths = {"/a/*"};
  CHECK(Access(listen).refusal({.method = "CONNECT", .host = "a", .path = "", .port = 443}) ==
        "path-not-allowed");
}

TEST_CASE("a path that leads to one answer in one reading and to another in another is ambiguous",
          "[settings][access]") {
  config::Listen listen;
  const auto refusal = [&](const char* path, const char* as_sent = "") {
    return Access(listen).refusal(
        {.method = "GET", .host = "a", .path = path, .port = 80, .path_as_sent = as_sent});
  };
  listen.deny_paths = {"/admin/*"};
  for (const char* path : {"/admin/x", "/admin//x", "/admin/x%2Fy", "/admin/x;v=1"}) {
    CAPTURE(path);
    CHECK(refusal(path) == "path-not-allowed");
  }
  for (const char* path :
       {"/admin%2Fx", "//admin/x", "/%2Fadmin/x", "/a/..%2Fadmin/x", "/a%2F..%2Fadmin%2Fx",
        "/a//..%2F..%2Fadmin/x", "/admin%5Cx", "/admin\\x", "/admin%252Fx", "/a/..;/admin/x",
        "/a/%252e%252e/admin/x", "/admin;a/x", "/admin%C0%AFx", "/admin/..%2Fx", "/admin%00/x"}) {
    CAPTURE(path);
    CHECK(refusal(path) == kAmbiguousPath);
  }
  CHECK(refusal("/admin/x", "/a/%2e%2e/admin/x") == kAmbiguousPath);
  CHECK(refusal("/admin/x", "/a/../admin/x") == "path-not-allowed");
  for (const char* path : {"/admin", "/a%2Fadmin/x", "/a/admin//x", "/b%20c", "/@a%2Fb", "/x;v=1",
                           "/cdn//a//b", "/g++_1%3A2.deb", "/caf%C3%A9"}) {
    CAPTURE(path);
    CHECK(refusal(path).empty());
  }
  // An allowed path must be allowed in each of its readings.
  listen.deny_paths.clear();
  listen.allow_paths = {"/public/*", "/caf\xc3\xa9/*", "/my%20files/*"};
  for (const char* path : {"/public/a%2Fb", "/public//a", "/public/%40a", "/public/a;v=1",
                           "/caf%C3%A9/x", "/my%20files/a"}) {
    CAPTURE(path);
    CHECK(refusal(path).empty());
  }
  for (const char* path : {"/public/..%2Fadmin", "/public//..%2F..%2Fx", "/public/..%5Cx",
                           "/public/..;/admin", "/public%2Fa"}) {
    CAPTURE(path);
    CHECK(refusal(path) == kAmbiguousPath);
  }
  listen.deny_paths = {"/@admin/*"};
  listen.allow_paths.clear();
  CHECK(refusal("/%40admin/x") == kAmbiguousPath);
  // Nothing is ambiguous where there are no lists of paths.
  listen.deny_paths.clear();
  CHECK(refusal("/public/..;/%2e%2e%00").empty());
}

TEST_CASE("a host is the same with a dot at its end and in capitals", "[settings][access]") {
  CHECK(plain_host("WWW.Example.COM.") == "www.example.com");
  CHECK(plain_host("[::1]") == "::1");
  CHECK(plain_host("") == "");
}

TEST_CASE("requests are counted by client, network or field", "[settings][access][limits]") {
  const MonotonicTime now{std::chrono::hours(1)};
  const Named named{.method = "GET", .host = "a", .path = "/login", .port = 80};
  http::Fields fields;
  const auto taken = [&](const RateLimits& limits, const char* client) {
    return limits.take("*:80", named, fields, client_ip(client), now).count() == 0;
  };
  config::RateLimit limit;
  limit.rate = 1;
  limit.burst = 1;
  {
    const RateLimits limits({limit});
    CHECK(taken(limits, "192.0.2.1"));
    CHECK_FALSE(taken(limits, "192.0.2.1"));
    CHECK(taken(limits, "192.0.2.2"));
    CHECK(taken(limits, "2001:db8::1"));
    CHECK_FALSE(taken(limits, "2001:db8::2"));
    CHECK(taken(limits, "2001:db8:0:1::2"));
  }
  limit.prefix_v4 = 24;
  limit.paths = {"/log*"};
  {
    const RateLimits limits({limit});
    CHECK(taken(limits, "192.0.2.1"));
    CHECK_FALSE(taken(limits, "192.0.2.2"));
    CHECK(taken(limits, "192.0.3.1"));
  }
  limit.hosts = {"b"};
  {
    const RateLimits limits({limit});
    CHECK(taken(limits, "192.0.2.1"));
    CHECK(taken(limits, "192.0.2.1"));
  }
  limit.hosts.clear();
  limit.field = "x-key";
  const RateLimits limits({limit});
  CHECK(taken(limits, "192.0.2.1"));
  CHECK(taken(limits, "192.0.2.1"));
  fields.add("X-Key", "one");
  CHECK(taken(limits, "192.0.2.1"));
  CHECK_FALSE(taken(limits, "192.0.4.1"));
  fields.clear();
  fields.add("X-Key", "two");
  CHECK(taken(limits, "192.0.2.1"));
}

TEST_CASE("each line of a limited field needs a token", "[settings][access][limits]") {
  const MonotonicTime now{std::chrono::hours(1)};
  const Named named{.method = "GET", .host = "a", .path = "/", .port = 80};
  config::RateLimit limit;
  limit.rate = 0.001;
  limit.burst = 2;
  limit.field = "x-key";
  const RateLimits limits({limit});
  const auto taken = [&](std::initializer_list<const char*> lines) {
    http::Fields fields;
    for (const char* line : lines) fields.add("X-Key", line);
    return limits.take("*:80", named, fields, client_ip("192.0.2.1"), now).count() == 0;
  };
  CHECK(taken({"one", "junk"}));
  CHECK(taken({"junk2", "one"}));
  CHECK_FALSE(taken({"one", "junk3"}));
  CHECK_FALSE(taken({"junk4", "one"}));
  CHECK_FALSE(taken({"one"}));
  // A request that is refused takes nothing of its other lines, whichever comes first.
  for (int i = 0; i < 5; ++i) CHECK_FALSE(taken({"a", "one", "z"}));
  CHECK(taken({"a", "z"}));
  CHECK(taken({"a", "z"}));
  CHECK_FALSE(taken({"a"}));
  // Repeated lines, as proxies make them, are one client's.
  CHECK(taken({"two", "two", "two"}));
  CHECK(taken({"two", "two", "two"}));
  CHECK_FALSE(taken({"two"}));
  // An empty line is a value.
  CHECK(taken({""}));
  CHECK(taken({"", ""}));
  CHECK_FALSE(taken({""}));
  CHECK(taken({}));
}

TEST_CASE("a limit for a path counts it in whichever way it is written",
          "[settings][access][limits]") {
  const MonotonicTime now{std::chrono::hours(1)};
  config::RateLimit limit;
  limit.rate = 1;
  limit.burst = 1;
  limit.paths = {"/login/*"};
  const RateLimits limits({limit});
  const auto taken = [&](const char* path) {
    const Named named{.method = "GET", .host = "a", .path = path, .port = 80};
    return limits.take("*:80", named, {}, client_ip("192.0.2.1"), now).count() == 0;
  };
  CHECK(taken("/login%2Fx"));
  CHECK_FALSE(taken("//login/x"));
  CHECK_FALSE(taken("/login/x"));
  CHECK(taken("/log%2Fin"));
}

TEST_CASE("a limit counts what comes to its listeners", "[settings][access][limits]") {
  const MonotonicTime now{std::chrono::hours(1)};
  const Named named{.method = "GET", .host = "a", .path = "/", .port = 80};
  config::RateLimit one;
  one.rate = 1;
  one.burst = 1;
  one.listener = {"*:80", "[::1]:81"};
  config::RateLimit other = one;
  other.listener = {"*:82"};
  const RateLimits limits({one, other});
  const auto taken = [&](const char* listener) {
    return limits.take(listener, named, {}, client_ip("192.0.2.1"), now).count() == 0;
  };
  CHECK(taken("*:80"));
  CHECK_FALSE(taken("*:80"));
  CHECK_FALSE(taken("[::1]:81"));  // counted together
  CHECK(taken("*:82"));
  CHECK_FALSE(taken("*:82"));
  for (int i = 0; i < 3; ++i) CHECK(taken("*:8"));
  CHECK(limits.concern("*:80"));
  CHECK_FALSE(limits.concern("*:8"));
}

TEST_CASE("what one limit refuses has taken nothing of the others", "[settings][access][limits]") {
  const MonotonicTime now{std::chrono::hours(1)};
  config::RateLimit all;
  all.rate = 0.001;
  all.burst = 5;
  config::RateLimit unrelated = all;
  unrelated.paths = {"/other"};
  unrelated.burst = 1;
  config::RateLimit narrow = all;
  narrow.paths = {"/login"};
  narrow.burst = 2;
  const RateLimits limits({all, unrelated, narrow});
  const auto taken = [&](const char* path) {
    const Named named{.method = "GET", .host = "a", .path = path, .port = 80};
    return limits.take("*:80", named, {}, client_ip("192.0.2.1"), now).count() == 0;
  };
  CHECK(taken("/login"));
  CHECK(taken("/login"));
  for (int i = 0; i < 50; ++i) CHECK_FALSE(taken("/login"));
  // Three of five are left of the first, and no fourth.
  CHECK(taken("/other"));
  CHECK_FALSE(taken("/other"));
  CHECK(taken("/a"));
  CHECK(taken("/a"));
  CHECK_FALSE(taken("/a"));
  CHECK_FALSE(taken("/login"));
}

}  // namespace encore::server
