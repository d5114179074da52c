// What outlives the read that brought a request.
#include "proxy/request/request_context.h"

#include <string>

#include "tests/catch.h"
#include "tests/request/requests.h"

namespace encore::server {
namespace {

using config::Mode;

TEST_CASE("a request outlives the bytes that it was read from", "[request][context]") {
  config::Config config;
  config.origin.emplace_back();
  Requests requests(config);
  REQUIRE(requests.make(Mode::kReverse, "GET /path?q HTTP/1.1\nHost: h\nCookie: c\n").status == 0);
  const auto request =
      RequestContext::make(requests.runtime, requests.view, requests.text, requests.client);
  const std::string key(requests.view.key);
  requests.text.assign(requests.text.size(), '#');
  REQUIRE(requests.make(Mode::kReverse, "GET /another HTTP/1.1\nHost: i\n").status == 0);
  CHECK(request->key == key);
  CHECK(request->head.target == "/path?q");
  CHECK(request->target.path == "/path");
  CHECK(request->target.query == "q");
  CHECK(request->target.authority.host == "h");
  CHECK(request->head.fields.value(http::FieldId::kCookie) == "c");
}

}  // namespace
}  // namespace encore::server
