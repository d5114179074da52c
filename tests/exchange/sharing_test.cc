#include "proxy/exchange/sharing.h"

#include <string>

#include "tests/catch.h"
#include "tests/exchange/some_request.h"

namespace encore::server {
namespace {

constexpr MonotonicTime kNow{std::chrono::hours(1)};
const std::string kGet = "GET http://a.example/ HTTP/1.1\nHost: a.example\n";

TEST_CASE("others wait for what anybody could have asked for", "[exchange][sharing]") {
  struct Row {
    std::string request;
    bool found;
    bool joins;
  };
  const Row row = GENERATE(values<Row>({
      {kGet, true, true},
      {kGet + "Accept-Language: de\n", true, true},
      {kGet + "Authorization: Basic YTpi\n", false, true},
      {kGet + "Cache-Control: no-store\n", false, true},
      {kGet + "Cache-Control: no-cache\n", true, false},
      {kGet + "Cache-Control: max-age=0\n", true, false},
      {kGet + "Cache-Control: max-age=1\n", true, true},
      {"HEAD http://a.example/ HTTP/1.1\nHost: a.example\n", false, true},
  }));
  CAPTURE(row.request);
  const auto request = some_request(row.request);
  CHECK(may_be_found(*request) == row.found);
  CHECK(may_join(*request) == row.joins);
}

TEST_CASE("of a key whose answers are each the asker's own, nobody waits for another's",
          "[exchange][sharing]") {
  using enum Inflight::Unshared;
  CHECK(may_lead(kNo, false));
  CHECK(may_lead(kNo, true));
  // A client that finds nothing waits for a response that each has to validate.
  CHECK(may_lead(kValidated, false));
  CHECK_FALSE(may_lead(kValidated, true));
  CHECK_FALSE(may_lead(kAnswer, false));
  CHECK_FALSE(may_lead(kUncacheable, false));
}

TEST_CASE("nobody waits where the config says so", "[exchange][sharing]") {
  config::Config config;
  config.cache.collapse = false;
  CHECK_FALSE(may_be_found(*some_request(kGet, some_runtime(config))));
}

SharedResponse fresh_response() {
  SharedResponse response;
  response.shareable = true;
  response.meta.status = 200;
  response.meta.lifetime_seconds = 60;
  response.meta.age_zero = kNow;
  response.meta.fresh_until = kNow + std::chrono::seconds(60);
  return response;
}

ShareDecision take_of(const SharedResponse& response, const std::string& fields,
                      MonotonicTime now = kNow, bool is_alike = true) {
  const auto request = some_request(kGet + fields);
  http::VariantKeys variants(request->head.fields, request->vary());
  return may_take(response, {*request, variants, now, is_alike});
}

TEST_CASE("another's response answers who the store alone would answer with it",
          "[exchange][sharing]") {
  SharedResponse response = fresh_response();
  CHECK(take_of(response, "") == ShareDecision::kYes);
  CHECK(take_of(response, "Cache-Control: no-cache\n") == ShareDecision::kAskAlone);
  CHECK(take_of(response, "", kNow + std::chrono::seconds(61)) == ShareDecision::kAskAlone);
  response.shareable = false;
  CHECK(take_of(response, "") == ShareDecision::kAskAlone);
}

TEST_CASE("what is for other credentials alone says nothing of what one's own bring",
          "[exchange][sharing]") {
  SharedResponse response = fresh_response();
  CHECK(take_of(response, "", kNow, false) == ShareDecision::kYes);
  // It is for itself that this one may not have it.
  CHECK(take_of(response, "Cache-Control: no-cache\n", kNow, false) == ShareDecision::kAskAlone);
  response.shareable = false;
  CHECK(take_of(response, "", kNow, false) == ShareDecision::kAskApart);
}

TEST_CASE("what each validates answers nobody else, who can wait until it is stored",
          "[exchange][sharing]") {
  SharedResponse response = fresh_response();
  response.shareable = false;
  response.is_for_validation = true;
  CHECK(take_of(response, "") == ShareDecision::kOnceStored);
  CHECK(take_of(response, "Cache-Control: no-cache\n") == ShareDecision::kOnceStored);
  response.names = "accept-language";
  response.variant_key = "accept-language: de\n";
  CHECK(take_of(response, "") == ShareDecision::kAskAgain);
}

TEST_CASE("who is brought another variant asks again, and may wait again", "[exchange][sharing]") {
  SharedResponse response = fresh_response();
  const auto german = some_request(kGet + "Accept-Language: de\n");
  http::VariantKeys variants(german->head.fields, german->vary());
  response.names = "accept-language";
  response.variant_key = std::string(variants.make(response.names));
  CHECK(take_of(response, "Accept-Language: de\n") == ShareDecision::kYes);
  CHECK(take_of(response, "Accept-Language: fr\n") == ShareDecision::kAskAgain);
  CHECK(take_of(response, "") == ShareDecision::kAskAgain);
}

TEST_CASE("what comes from where a client may not go is no answer to it", "[exchange][sharing]") {
  SharedResponse response = fresh_response();
  response.meta.flags |= http::StoredMeta::kPrivateOrigin;
  const auto request = some_request(kGet);
  const bool may = request->runtime->destinations.may_reach_private(request->client);
  CHECK(take_of(response, "") == (may ? ShareDecision::kYes : ShareDecision::kAskAlone));
}

}  // namespace
}  // namespace encore::server
