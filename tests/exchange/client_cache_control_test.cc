// The Cache-Control that clients are sent in place of the origin's, where a rule says so.
#include "proxy/exchange/client_cache_control.h"

#include <string>

#include "tests/catch.h"
#include "tests/exchange/some_request.h"

namespace encore::server {
namespace {

// Returns the head as a rule with this Cache-Control for clients leaves it.
std::string edited(std::string_view fields, int status = 200, bool is_shared = true,
                   const std::optional<std::string>& ruled = "max-age=5") {
  config::Config config;
  config::Rule rule;
  rule.client_cache_control = ruled;
  config.rule = {rule};
  const auto request =
      some_request("GET http://a.example/x HTTP/1.1\nHost: a.example\n", some_runtime(config));
  REQUIRE(request->rule != nullptr);
  ResponseSource source;
  source.is_shared = is_shared;
  ResponsePlan plan;
  plan.status = status;
  plan.head = "HTTP/1.1 " + std::to_string(status) + " OK\r\n" + std::string(fields);
  set_client_cache_control(*request->rule, source, plan);
  return plan.head.substr(plan.head.find("\r\n") + 2);
}

TEST_CASE("a rule's cache-control takes the place of the origin's", "[exchange][rules]") {
  CHECK(edited("A: 1\r\nCache-Control: max-age=60\r\nB: 2\r\n") ==
        "A: 1\r\nB: 2\r\nCache-Control: max-age=5\r\n");
  CHECK(edited("A: 1\r\n") == "A: 1\r\nCache-Control: max-age=5\r\n");
  CHECK(edited("Cache-Control: public\r\nA: 1\r\nCACHE-CONTROL: s-maxage=1\r\n") ==
        "A: 1\r\nCache-Control: max-age=5\r\n");
}

TEST_CASE("a rule's cache-control opens nothing that the origin has closed", "[exchange][rules]") {
  const std::string fields = GENERATE(as<std::string>(), "Cache-Control: private\r\n",
                                      "A: 1\r\ncache-control:no-store \r\n",
                                      "Cache-Control: max-age=60\r\nCache-Control: no-cache\r\n");
  CHECK(edited(fields) == fields);
}

TEST_CASE("a 304 without a lifetime keeps its silence", "[exchange][rules]") {
  CHECK(edited("A: 1\r\n", 304) == "A: 1\r\n");
  for (const char* said : {"max-age=60", "s-maxage=60", "public"}) {
    CHECK(edited("Cache-Control: " + std::string(said) + "\r\n", 304) ==
          "Cache-Control: max-age=5\r\n");
  }
}

TEST_CASE("a response for one client, or without such a rule, is left as it is",
          "[exchange][rules]") {
  CHECK(edited("Cache-Control: max-age=60\r\n", 200, false) == "Cache-Control: max-age=60\r\n");
  CHECK(edited("Cache-Control: max-age=60\r\n", 200, true, std::nullopt) ==
        "Cache-Control: max-age=60\r\n");
}

}  // namespace
}  // namespace encore::server
