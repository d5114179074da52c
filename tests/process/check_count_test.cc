#include "proxy/process/check_count.h"

#include "proxy/process/health_check.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

using Change = CheckCount::Change;

TEST_CASE("a server is down after so many failures in a row, and up after so many successes",
          "[process][health]") {
  CheckCount count({.down = 3, .up = 2}, false);
  CHECK_FALSE(count.note(false));
  CHECK_FALSE(count.note(false));
  CHECK_FALSE(count.note(true));  // not in a row
  CHECK_FALSE(count.note(false));
  CHECK_FALSE(count.note(false));
  CHECK((count.note(false) == Change::kDown));
  CHECK_FALSE(count.note(false));
  CHECK_FALSE(count.note(true));
  CHECK_FALSE(count.note(false));
  CHECK_FALSE(count.note(true));
  CHECK((count.note(true) == Change::kUp));
  CHECK_FALSE(count.note(true));
}

TEST_CASE("a check that finds a server down before begins there", "[process][health]") {
  CheckCount count({.down = 1, .up = 1}, true);
  CHECK_FALSE(count.note(false));
  CHECK((count.note(true) == Change::kUp));
  CHECK((count.note(false) == Change::kDown));
}

TEST_CASE("what a check asks, and what is well", "[process][health]") {
  config::Origin origin;
  origin.health_path = "/health?deep=1";
  OriginServer server;
  server.authority = "10.0.0.1:8080";
  CHECK(health_request(origin, server)
            .starts_with("GET /health?deep=1 HTTP/1.1\r\nHost: 10.0.0.1:8080\r\n"));
  origin.host = "www.example.com";
  CHECK(health_request(origin, server).find("\r\nHost: www.example.com\r\n") != std::string::npos);
  origin.host_header = config::HostHeader::kOrigin;
  CHECK(health_request(origin, server).find("\r\nHost: 10.0.0.1:8080\r\n") != std::string::npos);
  for (const int status : {200, 204, 301, 399}) CHECK(is_healthy(origin, status));
  for (const int status : {400, 404, 500, 503}) CHECK_FALSE(is_healthy(origin, status));
  origin.health_status = {200, 404};
  for (const int status : {200, 404}) CHECK(is_healthy(origin, status));
  for (const int status : {204, 500}) CHECK_FALSE(is_healthy(origin, status));
}

}  // namespace
}  // namespace encore::server
