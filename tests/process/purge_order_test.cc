// Purges over the admin address, as JSON and as a form.
#include <string>
#include <vector>

#include "proxy/admin/admin_message.h"
#include "proxy/process/purge.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

using Texts = std::vector<std::string>;

AdminRequest posted(std::string_view type, std::string_view body, std::string_view query = {}) {
  AdminRequest request;
  request.method = "POST";
  request.path = "/purge";
  request.query = query;
  request.fields.emplace_back("content-type", type);
  request.body = body;
  return request;
}

Result<PurgeOrder> read(std::string_view json) {
  return read_purge_order(posted("application/json", json));
}

std::string error_of(const Result<PurgeOrder>& order) {
  return order ? "none" : order.error().message;
}

TEST_CASE("a purge is read from JSON as from a form, target by target", "[server][purge]") {
  const std::string form =
      "url=http://a.example/1&url=http://a.example/2&prefix=https://b.example/x&tag=c&soft=true"
      "&dry_run=1&token=t";
  const auto by_form = read_purge_order(posted("application/x-www-form-urlencoded", form));
  const auto by_query = read_purge_order(posted("text/plain", "", form));
  const auto by_json =
      read(R"({"url": ["http://a.example/1", "http://a.example/2"], "prefix": "https://b.example/x",
               "tag": ["c"], "soft": true, "dry_run": true, "token": "t"})");
  for (const auto& order : {by_form, by_query, by_json}) {
    CAPTURE(error_of(order));
    REQUIRE(order);
    CHECK(order->urls == Texts{"http://a.example/1", "http://a.example/2"});
    CHECK(order->prefixes == Texts{"https://b.example/x"});
    CHECK(order->tags == Texts{"c"});
    CHECK(order->soft);
    CHECK(order->dry_run);
    CHECK_FALSE(order->all);
    CHECK(order->token == "t");
  }
  const auto all = read(R"({"all": true, "soft": false})");
  REQUIRE(all);
  CHECK(all->all);
  CHECK_FALSE(all->soft);
}

TEST_CASE("a purge that is not understood says what of it", "[server][purge]") {
  CHECK(error_of(read("{")) == "the body is not a JSON object");
  CHECK(error_of(read("[]")) == "the body is not a JSON object");
  CHECK(error_of(read(R"({"tag": [["a"]]})")) ==
        "the body is nested; accepted: keys with a string or a list of strings");
  CHECK(error_of(read(R"({"tag": 1})")) == "\"tag\" is not a string");
  CHECK(error_of(read(R"({"tag": ["a", 1]})")) == "\"tag\" is not a string");
  CHECK(error_of(read(R"({"tag": ""})")) == "\"tag\" is empty");
  CHECK(error_of(read(R"({"soft": "maybe", "tag": "a"})")) ==
        "soft is true or false, not \"maybe\"");
  CHECK(error_of(read(R"({"token": ["a", "b"], "tag": "a"})")) == "\"token\" is given twice");
  CHECK(error_of(read(R"({"urls": "http://a.example/"})")) ==
        "unknown \"urls\"; accepted: url, prefix, tag, all, soft, dry_run, token");
  CHECK(error_of(read(R"({"url": "a.example/1"})")) == "\"a.example/1\" is not an http(s) URL");
  CHECK(error_of(read("{}")) == "no target; accepted: url, prefix, tag, all");
  CHECK(error_of(read(R"({"soft": true})")) == "no target; accepted: url, prefix, tag, all");
}

}  // namespace
}  // namespace encore::server
