// Parts of a response that the readers of a transfer share, and those for the one who asked alone.
#include "proxy/origin/passed_response.h"

#include <algorithm>
#include <string>

#include "tests/catch.h"
#include "tests/origin/receive.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

struct Passed {
  explicit Passed(std::string_view lines, std::string_view request_fields = {},
                  http::Method method = http::Method::kGet)
      : world({"http://127.0.0.1:1"}),
        request(world.request(std::string(method == http::Method::kHead ? "HEAD" : "GET") +
                              " /a HTTP/1.1\r\nHost: h\r\n" + std::string(request_fields) +
                              "\r\n")),
        text(std::string(lines) + "\r\n") {
    receive(world, text, received, method);
    request_policy = *received.request_policy;
    it = make_passed_response(*world.services, *request, received, true);
  }
  std::string common() const { return it.response->head.substr(0, it.response->common_bytes); }
  std::string own() const { return it.response->head.substr(it.response->common_bytes); }

  World world;
  std::shared_ptr<const RequestContext> request;
  std::string text;
  ReceivedResponse received;
  RequestPolicy request_policy;  // as the configuration has it; to be changed, and taken by again()
  PassedResponse it;
  const http::StoredMeta& again() {
    received.request_policy = &request_policy;
    it = make_passed_response(*world.services, *request, received, true);
    return it.response->meta;
  }
};

const std::string kOkLines = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";

TEST_CASE("what is for the one who asked stands behind what all may see", "[origin][passed]") {
  const Passed passed(kOkLines +
                      "Set-Cookie: a=1\r\nAge: 7\r\nX-All: 1\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
                      "Content-Type: text/html\r\nContent-Length: 5\r\nSet-Cookie: b=2\r\n");
  CHECK(passed.common().starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(passed.common().find("X-All: 1\r\n") != std::string::npos);
  CHECK(passed.common().find("Set-Cookie") == std::string::npos);
  CHECK(passed.common().find("Age: 7") == std::string::npos);
  CHECK(passed.own().find("Set-Cookie: a=1\r\n") != std::string::npos);
  CHECK(passed.own().find("Set-Cookie: b=2\r\n") != std::string::npos);
  CHECK(passed.own().find("Age: 7\r\n") != std::string::npos);
  CHECK(passed.it.response->head.find("X-Hop") == std::string::npos);
  CHECK(passed.it.response->length == 5U);
  CHECK(passed.it.response->content_type == "text/html");
  CHECK(passed.it.response->whole);
  // Nor is it stored for others.
  CHECK(std::ranges::find(passed.received.directives.stripped_fields, "set-cookie") !=
        passed.received.directives.stripped_fields.end());
}

TEST_CASE("fields that the response names private are for the one who asked", "[origin][passed]") {
  const Passed passed(
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=60, private=\"X-Own\"\r\nX-Own: 1\r\nX-All: 1\r\n"
      "Content-Length: 0\r\n");
  CHECK(passed.common().find("X-Own: 1") == std::string::npos);
  CHECK(passed.own().find("X-Own: 1\r\n") != std::string::npos);
}

TEST_CASE("a response is of the variant that its request selects, or of none", "[origin][passed]") {
  const std::string vary = kOkLines + "Vary: Accept-Language\r\nContent-Length: 0\r\n";
  const Passed german(vary, "Accept-Language: de\r\n");
  const Passed english(vary, "Accept-Language: en\r\n");
  const Passed plain(kOkLines + "Content-Length: 0\r\n", "Accept-Language: de\r\n");
  CHECK(german.it.response->names == "accept-language");
  CHECK(german.it.response->variant_key != english.it.response->variant_key);
  CHECK(german.it.response->variant != english.it.response->variant);
  CHECK(german.it.response->variant != 0);
  CHECK(plain.it.response->variant == 0);
  CHECK(plain.it.response->names.empty());
  const Passed all(kOkLines + "Vary: *\r\nContent-Length: 0\r\n");
  CHECK(all.it.response->names == "*");
  CHECK_FALSE(all.it.decision.ok());
  // A field of such length selects nothing, and is stored for nobody.
  const Passed long_field(vary, "Accept-Language: " + std::string(5000, 'x') + "\r\n");
  CHECK(long_field.it.response->names == "*");
  CHECK(long_field.it.decision.reason == http::StoreReason::kVaryTooLarge);
}

TEST_CASE("a length is told where there is no body to count", "[origin][passed]") {
  const Passed head(kOkLines + "Content-Length: 4711\r\n", {}, http::Method::kHead);
  CHECK(head.it.response->length == 4711U);
  CHECK(head.it.response->head.find("Content-Length: 4711\r\n") != std::string::npos);
  const Passed not_modified("HTTP/1.1 304 Not Modified\r\nContent-Length: 4711\r\n",
                            "If-None-Match: \"a\"\r\n");
  CHECK(not_modified.it.response->length == 4711U);
  const Passed none("HTTP/1.1 204 No Content\r\nContent-Length: 4711\r\n");
  CHECK_FALSE(none.it.response->length);
  const Passed open(kOkLines + "Transfer-Encoding: chunked\r\n");
  CHECK_FALSE(open.it.response->length);
  CHECK(open.it.response->head.find("Transfer-Encoding") == std::string::npos);
}

TEST_CASE("ranges are cut of a whole 200 alone", "[origin][passed]") {
  CHECK_FALSE(Passed("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n").it.response->whole);
  CHECK_FALSE(Passed("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-0/2\r\n"
                     "Content-Length: 1\r\n")
                  .it.response->whole);
}

TEST_CASE("configured windows of staleness are for what was fresh once", "[origin][passed]") {
  using http::StoredMeta;
  Passed fresh(kOkLines + "Content-Length: 0\r\n");
  Passed never("HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 0\r\n");
  Passed permits(
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=0, stale-while-revalidate=20, "
      "stale-if-error=30\r\n"
      "ETag: \"v\"\r\nContent-Length: 0\r\n");
  for (Passed* passed : {&fresh, &never, &permits})
    passed->request_policy.swr_seconds_default = 600;
  CHECK(fresh.again().swr_seconds == 600);
  CHECK(never.again().swr_seconds == 0);
  CHECK(permits.again().swr_seconds == 20);
  for (Passed* passed : {&fresh, &never, &permits}) {
    passed->request_policy.swr_seconds = passed->request_policy.sie_seconds = 6000;
  }
  CHECK(fresh.again().swr_seconds == 6000);
  CHECK(fresh.again().sie_seconds == 6000);
  CHECK(fresh.again().is(StoredMeta::kHasSie));
  CHECK(never.again().swr_seconds == 0);
  CHECK(never.again().sie_seconds == 0);
  CHECK(permits.again().swr_seconds == 20);
  CHECK(permits.again().sie_seconds == 30);
  permits.request_policy.swr_seconds = permits.request_policy.sie_seconds = 5;
  CHECK(permits.again().swr_seconds == 5);
  CHECK(permits.again().sie_seconds == 5);
  // By a rule that decides the lifetime the operator answers for it, also where that is none.
  never.request_policy.store.freshness.rule.seconds = 0;
  CHECK(never.again().swr_seconds == 6000);
  CHECK(never.again().sie_seconds == 6000);
  CHECK(never.again().is(StoredMeta::kNeverFresh));
  never.request_policy.sie_seconds.reset();
  never.request_policy.stale.error_status_seconds_max = 700;
  CHECK(never.again().sie_seconds == 700);
  never.request_policy.store.freshness.rule = {.seconds_max = 0};
  CHECK(never.again().sie_seconds == 0);
  never.request_policy.store.freshness.rule = {.seconds = 1};
  never.request_policy.sie_seconds = 6000;
  CHECK(never.again().swr_seconds == 6000);
  CHECK(never.again().sie_seconds == 6000);
}

TEST_CASE("no freshness is guessed where the origin saw a Cookie", "[origin][passed]") {
  using http::StoredMeta;
  const std::string dated =
      "HTTP/1.1 200 OK\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n";
  const std::string cookie = "Cookie: a=1\r\n";
  Passed plain(dated);
  CHECK_FALSE(plain.again().is(StoredMeta::kNeverFresh));
  CHECK_FALSE(plain.again().is(StoredMeta::kWithCookie));
  Passed with(dated, cookie);
  CHECK(with.it.decision.ok());
  CHECK(with.again().is(StoredMeta::kNeverFresh));
  CHECK(with.again().is(StoredMeta::kWithCookie));
  with.request_policy.store.freshness.heuristic_with_cookie = true;
  CHECK_FALSE(with.again().is(StoredMeta::kNeverFresh));
  CHECK(with.again().is(StoredMeta::kWithCookie));
  // A rule's bounds hold for what is left of the guess.
  with.request_policy.store.freshness.heuristic_with_cookie = false;
  with.request_policy.store.freshness.rule.seconds_min = 60;
  CHECK(with.again().lifetime_seconds == 60);
  Passed stated(dated + "Cache-Control: max-age=60\r\n", cookie);
  CHECK_FALSE(stated.again().is(StoredMeta::kNeverFresh));
  // The rest of a part that came with one.
  plain.received.part_with_cookie = true;
  CHECK(plain.again().is(StoredMeta::kNeverFresh));
  CHECK(plain.again().is(StoredMeta::kWithCookie));
}

TEST_CASE("an interim response loses what is of one hop", "[origin][passed]") {
  World world({"http://127.0.0.1:1"});
  const auto request = world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string text =
      "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n";
  const std::string sent = interim_text(*request, http::response_head(text));
  CHECK(sent == "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nVia: 1.1 encore-test\r\n\r\n");
}

}  // namespace
}  // namespace encore::server
