// Invalidation, Cache-Status, Via, tags and interim responses.
#include "proxy/http/cache_status.h"
#include "proxy/http/interim.h"
#include "proxy/http/invalidation.h"
#include "proxy/http/structured.h"
#include "proxy/http/tags.h"
#include "proxy/http/via.h"
#include "tests/catch.h"
#include "tests/http/heads.h"
#include "tests/rfc9111/lines.h"

namespace encore::http {
namespace {

std::string written(const CacheStatus& status) {
  std::string out(cache_status_bytes_max("encore", status), '\0');
  out.resize(write_cache_status("encore", status, out.data()));
  return out;
}

}  // namespace

TEST_CASE("unsafe and unknown methods invalidate unless they failed", "[rfc9111][4.4]") {
  for (const char* name : {"POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "get"}) {
    CAPTURE(name);
    const Method method = classify_method(name);
    for (const unsigned status : {200U, 201U, 204U, 302U, 399U}) CHECK(invalidates(method, status));
    for (const unsigned status : {199U, 400U, 404U, 500U}) CHECK_FALSE(invalidates(method, status));
  }
  for (const char* name : {"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"}) {
    CAPTURE(name);
    CHECK_FALSE(invalidates(classify_method(name), 200));
  }
}

TEST_CASE("what Location and Content-Location name is invalidated within the origin",
          "[rfc9111][4.4]") {
  KeyOptions options;
  const auto keys = [&options](const std::string& fields) {
    const std::string request = crlf("POST http://h/a/b?q HTTP/1.0");
    const std::string response = crlf("HTTP/1.1 201 x\n" + fields);
    Target target;
    REQUIRE(resolve_target(request_head(request), Scheme::kHttp, target) == TargetStatus::kOk);
    return invalidated_keys(target, response_head(response), options);
  };
  using V = std::vector<std::string>;
  CHECK(keys("A: b") == V{"http://h/a/b?q"});
  CHECK(keys("Location: /c#f\nContent-Location: d") ==
        V{"http://h/a/b?q", "http://h/c", "http://h/a/d"});
  CHECK(keys("Location: http://H:80/c\nContent-Location: http://h/./c") ==
        V{"http://h/a/b?q", "http://h/c"});
  CHECK(keys("Location: http://other/c\nContent-Location: https://h/c") == V{"http://h/a/b?q"});
  CHECK(keys("Location: http://h:81/c\nContent-Location: //h:81/c") == V{"http://h/a/b?q"});
  CHECK(keys("Location: mailto:a@b") == V{"http://h/a/b?q"});
  // With http and https as one scheme.
  options.scheme = Scheme::kHttp;
  CHECK(keys("Location: http://other/c\nContent-Location: https://h/c") ==
        V{"http://h/a/b?q", "http://h/c"});
  CHECK(keys("Location: https://h:443/c\nContent-Location: https://h:80/d") ==
        V{"http://h/a/b?q", "http://h/c", "http://h/d"});
  CHECK(keys("Location: https://h:81/c") == V{"http://h/a/b?q"});
}

TEST_CASE("a Cache-Status that is no list is told from one that is", "[rfc9211][2]") {
  for (const char* good : {"", " ", "a", "a; hit", "\"a b\"; hit; ttl=-3, b;fwd=miss", "a,\tb",
                           "a;key=\"x, \\\"y\"", "(a b);c, d", "a;x=?0;y=1.5;z=:AA==:"}) {
    CAPTURE(good);
    CHECK(is_structured_list(good));
  }
  for (const char* bad : {"a,", ",a", "a hit", "a; Hit", "a; hit, \"b", "a;x=", "a;x=\"\\z\"", "=",
                          "?2", "a;", "(a", "a\x7f"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_structured_list(bad));
  }
}

TEST_CASE("Cache-Status is written as RFC 9211 has it", "[rfc9211][2]") {
  CHECK(written({.hit = true, .ttl = 59}) == "encore; hit; ttl=59");
  CHECK(written({.hit = true, .ttl = -3}) == "encore; hit; ttl=-3");
  CHECK(written({.forwarded = Forwarded::kUriMiss, .stored = false, .detail = "first-request"}) ==
        "encore; fwd=uri-miss; stored=?0; detail=first-request");
  CHECK(written({.forwarded = Forwarded::kUriMiss, .stored = true, .detail = "second-request"}) ==
        "encore; fwd=uri-miss; stored; detail=second-request");
  CHECK(written({.forwarded = Forwarded::kUriMiss, .collapsed = true}) ==
        "encore; fwd=uri-miss; collapsed");
  CHECK(written({.forwarded = Forwarded::kStale, .forward_status = 304, .ttl = 60}) ==
        "encore; fwd=stale; fwd-status=304; ttl=60");
  CHECK(written({.forwarded = Forwarded::kBypass, .key = "http://h/\"a\\\x01", .detail = "a b"}) ==
        "encore; fwd=bypass; key=\"http://h/\\\"a\\\\\"; detail=\"a b\"");
  CHECK(written({}) == "encore");
}

TEST_CASE("the last member of Cache-Status is the sender's", "[rfc9211][2]") {
  const auto tells = [](const std::string& lines) {
    const FieldText text(lines);
    const auto last = last_cache_status(text.fields());
    return last && tells_of_earlier_request(*last);
  };
  for (const char* yes :
       {"Cache-Status: encore; hit; ttl=59", "Cache-Status: a; fwd=miss, \"b c\"; hit=?1",
        "Cache-Status: a; fwd=miss\nX: y\nCache-Status: b; hit",
        "Cache-Status: encore; fwd=uri-miss; stored; detail=second-request",
        "Cache-Status: encore; fwd=uri-miss; stored; detail=\"parent-hint\"",
        "Cache-Status: encore; fwd=uri-miss; collapsed",
        "Cache-Status: encore; fwd=stale; fwd-status=304; detail=revalidated",
        "Cache-Status: b; fwd=miss; hit=?0; hit"}) {
    CAPTURE(yes);
    CHECK(tells(yes));
  }
  for (const char* no :
       {"X: y", "Cache-Status:", "Cache-Status: encore", "Cache-Status: a; hit, b; fwd=miss",
        "Cache-Status: a; hit\nCache-Status: b; fwd=uri-miss; stored; detail=first-request",
        "Cache-Status: b; fwd=uri-miss; stored; detail=probation",
        "Cache-Status: b; fwd=uri-miss; stored; detail=admitted", "Cache-Status: b; hit=?0",
        "Cache-Status: b; hit=hit", "Cache-Status: b; hit=1", "Cache-Status: b; hit; hit=?0",
        "Cache-Status: b; key=\"; hit\"", "Cache-Status: b; fwd=stale2", "Cache-Status: (a b; hit)",
        "Cache-Status: hit",
        // Malformed lines spoil all of them.
        "Cache-Status: b; hit,", "Cache-Status: b; hit; detail=\"x",
        "Cache-Status: b; Hit\nCache-Status: c; hit",
        "Cache-Status: b; hit\nCache-Status: ==", "Cache-Status: b; hit; x=\xff"}) {
    CAPTURE(no);
    CHECK_FALSE(tells(no));
  }
  std::string many = "Cache-Status: b; hit";
  for (std::size_t i = 1; i < kParametersMax; ++i) many += ";p" + std::to_string(i);
  CHECK(tells(many));
  CHECK_FALSE(tells(many + ";one-more"));
}

TEST_CASE("Via names the version received, and shows a circle", "[rfc9110][7.6.3]") {
  CHECK(via_member(Version::kHttp10, "encore-1a") == "1.0 encore-1a");
  CHECK(via_member(Version::kHttp11, "encore-1a") == "1.1 encore-1a");
  CHECK(via_has(FieldText("Via: 1.0 a, 1.1 Encore-1A (x)").fields(), "encore-1a"));
  CHECK(via_has(FieldText("Via: 1.0 a\nVia: HTTP/1.1\tencore-1a").fields(), "encore-1a"));
  CHECK_FALSE(
      via_has(FieldText("Via: 1.0 a, 1.1 encore-1b, 1.1 x (encore-1a)").fields(), "encore-1a"));
  CHECK_FALSE(via_has(FieldText("X: 1.1 encore-1a").fields(), "encore-1a"));
}

TEST_CASE("interim responses go on to clients that know them", "[rfc9110][15.2][rfc8297][2]") {
  using A = InterimAction;
  const InterimContext modern;
  for (const unsigned status : {100U, 102U, 103U, 199U}) {
    CHECK(interim_action(status, modern) == A::kForward);
    CHECK(interim_action(status, {.client = Version::kHttp10}) == A::kDrop);
  }
  CHECK(interim_action(100, {.continue_sent = true}) == A::kDrop);
  CHECK(interim_action(103, {.continue_sent = true}) == A::kForward);
  CHECK(interim_action(101, modern) == A::kBad);
  CHECK(interim_action(101, {.asked_upgrade = true}) == A::kSwitch);
}

TEST_CASE("only 100-continue can be expected, and only in HTTP/1.1", "[rfc9110][10.1.1]") {
  const auto expects = [](const std::string& version, const std::string& fields) {
    const std::string text = crlf("POST / HTTP/" + version + "\n" + fields);
    return expectation(request_head(text));
  };
  CHECK(expects("1.1", "Expect: 100-Continue") == Expectation::kContinue);
  CHECK(expects("1.1", "A: b") == Expectation::kNone);
  CHECK(expects("1.0", "Expect: 100-continue") == Expectation::kNone);
  CHECK(expects("1.1", "Expect: 200-ok") == Expectation::kUnknown);
  CHECK(expects("1.1", "Expect: 100-continue, x") == Expectation::kUnknown);
  CHECK(expects("1.1", "Expect: x, 100-continue") == Expectation::kUnknown);
}

TEST_CASE("tags are read from the fields that are named", "[http][purge]") {
  const FieldText text(
      "Surrogate-Key:  a  b\t\nCache-Tag: c d, E,, \nsurrogate-key: f\nX-Tag: g\nVary: h");
  CHECK(tags_in(text.fields(), {"Surrogate-Key", "Cache-Tag"}) == "a\nb\nc d\nE\nf\n");
  CHECK(tags_in(text.fields(), {"x-tag"}) == "g\n");
  CHECK(tags_in(text.fields(), {}).empty());
  const FieldText symfony("X-Cache-Tags: a,b-1\n");
  CHECK(tags_in(symfony.fields(), {"X-Cache-Tags"}) == "a\nb-1\n");
}

}  // namespace encore::http
