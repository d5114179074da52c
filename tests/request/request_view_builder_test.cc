// The resource that a request names, by its head and its listener.
#include "proxy/request/request_view_builder.h"

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/request/requests.h"

namespace encore::server {
namespace {

using config::Mode;

config::Config two_routes() {
  config::Config config;
  config.forward.allow_clients = {"127.0.0.0/8"};
  config.cache.query_sort = true;
  for (const auto& [host, path] : {std::pair("site", "/"), {"site", "/api/"}}) {
    config::Origin& origin = config.origin.emplace_back();
    origin.host = host;
    origin.path = path;
    origin.servers = {"http://127.0.0.1:1"};
  }
  return config;
}

struct Views : Requests {
  Views() : Requests(two_routes()) {}
};

TEST_CASE("a request that cannot be or is not to be answered says why", "[request][view]") {
  struct Row {
    Mode mode;
    const char* text;
    const char* client;
    int status;
    Outcome outcome;
    const char* detail;
  };
  const char* const here = "127.0.0.1";
  const Row row = GENERATE_COPY(values<Row>({
      {Mode::kForward, "GET http://a/ HTTP/1.1\nHost: a\n", here, 0, Outcome::kBadRequest, ""},
      {Mode::kForward, "GET /a HTTP/1.1\nHost: a\n", here, 400, Outcome::kBadRequest,
       "forward-proxy-needs-absolute-form"},
      {Mode::kForward, "OPTIONS * HTTP/1.1\nHost: a\n", here, 400, Outcome::kBadRequest,
       "forward-proxy-needs-absolute-form"},
      {Mode::kForward, "GET http://a/ HTTP/1.1\nHost: a\n", "192.0.2.1", 403, Outcome::kDenied,
       "client-not-allowed"},
      {Mode::kForward, "CONNECT a:443 HTTP/1.1\nHost: a\n", here, 0, Outcome::kBadRequest, ""},
      {Mode::kForward, "CONNECT a:443 HTTP/1.1\nHost: a\n", "192.0.2.1", 403, Outcome::kDenied,
       "client-not-allowed"},
      {Mode::kReverse, "CONNECT a:443 HTTP/1.1\nHost: a\n", here, 405, Outcome::kDenied,
       "connect-on-reverse-listener"},
      {Mode::kReverse, "GET /a HTTP/1.1\nHost: site\n", "192.0.2.1", 0, Outcome::kBadRequest, ""},
      {Mode::kReverse, "GET /a HTTP/1.1\nHost: other\n", here, 404, Outcome::kNoRoute, "no-route"},
      {Mode::kReverse, "OPTIONS * HTTP/1.1\nHost: site\n", here, 404, Outcome::kNoRoute,
       "no-route"},
      {Mode::kReverse, "GET /a HTTP/1.1\nHost: a b\n", here, 400, Outcome::kBadRequest, "bad-host"},
      {Mode::kReverse,
       "POST /a HTTP/1.1\nHost: site\nContent-Length: 1\nTransfer-Encoding: chunked\n", here, 400,
       Outcome::kBadRequest, "framing"},
      {Mode::kReverse, "POST /a HTTP/1.1\nHost: site\nTransfer-Encoding: gzip, chunked\n", here,
       501, Outcome::kBadRequest, "framing"},
  }));
  CAPTURE(row.text, row.client);
  Views views;
  const ViewFault fault = views.make(row.mode, row.text, row.client);
  CHECK(fault.status == row.status);
  CHECK(fault.detail == row.detail);
  if (row.status != 0) CHECK(fault.outcome == row.outcome);
}

TEST_CASE("inside a CONNECT its host is asked for, and no other", "[request][view]") {
  struct Row {
    const char* text;
    int status;
    const char* detail;
  };
  const Row row = GENERATE(values<Row>({
      {"GET /a HTTP/1.1\nHost: site.test\n", 0, ""},
      {"GET /a HTTP/1.1\nHost: SITE.test:443\n", 0, ""},
      {"GET https://site.test/a HTTP/1.1\nHost: other.test\n", 0, ""},
      {"GET http://site.test/a HTTP/1.1\nHost: site.test\n", 400, "target"},
      {"GET https://other.test/a HTTP/1.1\nHost: site.test\n", 421, "misdirected"},
      {"GET /a HTTP/1.1\nHost: other.test\n", 421, "misdirected"},
      {"GET /a HTTP/1.1\nHost: site.test:80\n", 421, "misdirected"},
      {"GET /a HTTP/1.1\nHost: site.test.\n", 421, "misdirected"},
      {"GET /a HTTP/1.0\n", 421, "misdirected"},
      {"OPTIONS * HTTP/1.1\nHost: site.test\n", 400, "target"},
      {"CONNECT site.test:443 HTTP/1.1\nHost: site.test\n", 405, "connect-inside"},
  }));
  CAPTURE(row.text);
  Views views;
  const InterceptedConnect inside{.host = "site.test", .port = 443};
  const ViewFault fault = views.make(Mode::kForward, row.text, "127.0.0.1", &inside);
  CHECK(fault.status == row.status);
  CHECK(fault.detail == row.detail);
  if (row.status == 0) {
    CHECK(views.view.key == "forward:https://site.test/a");
    CHECK(views.view.target.form == http::TargetForm::kAbsolute);
    const std::string inside_key(views.view.key);
    CHECK(views.make(Mode::kForward, "GET https://site.test/a HTTP/1.1\nHost: a\n").status == 0);
    CHECK(views.view.key == inside_key);
  }
  // By a reload the listener may be another one meanwhile.
  CHECK(views.make(Mode::kReverse, row.text, "127.0.0.1", &inside).status != 0);
}

TEST_CASE("one key is one resource, whatever it is called", "[request][view]") {
  Views views;
  const auto key = [&](Mode mode, std::string_view text) {
    CHECK(views.make(mode, text).status == 0);
    CHECK(views.view.hash ==
          filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{1, 2}, views.view.key));
    return std::string(views.view.key);
  };
  const std::string forward = key(Mode::kForward, "GET http://site/a HTTP/1.1\nHost: site\n");
  CHECK(key(Mode::kForward, "GET HTTP://SITE:80/%61 HTTP/1.1\nHost: other\n") == forward);
  CHECK(key(Mode::kForward, "GET https://site/a HTTP/1.1\nHost: site\n") != forward);
  const std::string reverse = key(Mode::kReverse, "GET /a HTTP/1.1\nHost: site\n");
  CHECK(reverse != forward);
  // A reverse listener answers for itself, whatever scheme it is asked by.
  CHECK(key(Mode::kReverse, "GET https://site/a HTTP/1.1\nHost: site\n") == reverse);
  CHECK(key(Mode::kReverse, "GET /a HTTP/1.1\nHost: SITE:80\n") == reverse);
  // Its queries are sorted, those that a forward proxy passes on are not.
  CHECK(key(Mode::kReverse, "GET /?b&a HTTP/1.1\nHost: site\n") ==
        key(Mode::kReverse, "GET /?a&b HTTP/1.1\nHost: site\n"));
  CHECK(key(Mode::kForward, "GET http://site/?b&a HTTP/1.1\nHost: site\n") !=
        key(Mode::kForward, "GET http://site/?a&b HTTP/1.1\nHost: site\n"));
}

TEST_CASE("the route is chosen by what is cached, and keeps its objects apart", "[request][view]") {
  Views views;
  REQUIRE(views.make(Mode::kReverse, "GET /api/a HTTP/1.1\nHost: site\n").status == 0);
  const Route* const api = views.view.route;
  const std::string key(views.view.key);
  REQUIRE(views.make(Mode::kReverse, "GET /x/../api/a HTTP/1.1\nHost: site\n").status == 0);
  CHECK(views.view.route == api);
  CHECK(views.view.key == key);
  REQUIRE(views.make(Mode::kReverse, "GET /a HTTP/1.1\nHost: site\n").status == 0);
  CHECK(views.view.route != api);
  CHECK(std::string_view(views.view.key).substr(0, kRealmBytes) !=
        std::string_view(key).substr(0, kRealmBytes));
  REQUIRE(views.make(Mode::kForward, "GET http://site/a HTTP/1.1\nHost: site\n").status == 0);
  CHECK(views.view.route == nullptr);
  CHECK(std::string_view(views.view.key).starts_with(kForwardRealm));
}

TEST_CASE("a key of any length is written whole, and a panic report names the last",
          "[request][view]") {
  Views views;
  for (const std::size_t length : {10U, 5000U, 100U, 15000U}) {
    const std::string path = "/" + std::string(length, 'p');
    REQUIRE(views.make(Mode::kReverse, "GET " + path + " HTTP/1.1\nHost: site\n").status == 0);
    CHECK(views.view.key.ends_with("site" + path));
    CHECK(views.activity.key == views.view.key.substr(kRealmBytes));
    CHECK(views.activity.client_port == 4711);
  }
  views.end();
  CHECK(views.activity.key.empty());
}

}  // namespace
}  // namespace encore::server
