#include "proxy/http/storing.h"

#include <string>
#include <tuple>
#include <vector>

#include "proxy/http/stored_head.h"
#include "tests/catch.h"
#include "tests/http/heads.h"
#include "tests/rfc9111/clocks.h"
#include "tests/rfc9111/lines.h"

namespace encore::http {
namespace {

struct Case {
  std::string request;   // request line and fields, lines separated by '\n'
  std::string response;  // status and fields
  StoreReason reason;
};

StoreDecision store_decision(const std::string& request_lines, const std::string& response_lines,
                             const StoreOptions& options = {}) {
  const std::string request_text = crlf(request_lines);
  const std::string response_text = crlf("HTTP/1.1 " + response_lines);
  const RequestHead request = request_head(request_text);
  const ResponseHead response = response_head(response_text);
  Target target;
  REQUIRE(resolve_target(request, Scheme::kHttp, target) == TargetStatus::kOk);
  return may_store(request, target, parse_request_directives(request.fields), response,
                   parse_response_directives(response.fields), kNow, options);
}

const std::string kGet = "GET http://h/a HTTP/1.1\nHost: h";
const std::string kPost = "POST http://h/a HTTP/1.1\nHost: h";
const std::string kFresh = "\nCache-Control: max-age=60";
const std::string kLastModified = "\nLast-Modified: " + date_text(kNow - 1000);

void check(const std::vector<Case>& table, const StoreOptions& options = {}) {
  for (const Case& row : table) {
    CAPTURE(row.request, row.response);
    CHECK(to_string(store_decision(row.request, row.response, options).reason) ==
          to_string(row.reason));
  }
}

}  // namespace

TEST_CASE("any final status may be stored with explicit freshness, but those of RFC 6585",
          "[rfc9111][3]") {
  for (unsigned status = 200; status < 600; ++status) {
    CAPTURE(status);
    const std::string line = std::to_string(status) + " x";
    const bool of_one_client = status == 428 || status == 429 || status == 431 || status == 511;
    const bool never = status == 304 || status == 206 || of_one_client;
    CHECK(store_decision(kGet, line + kFresh).ok() != never);
    CHECK(store_decision(kGet, line + "\nExpires: " + date_text(kNow + 60)).ok() != never);
    CHECK(store_decision(kGet, line + kLastModified).ok() ==
          (is_heuristically_cacheable(status) && !never));
    CHECK_FALSE(store_decision(kGet, line).ok());
  }
}

TEST_CASE("directives and circumstances that forbid storing", "[rfc9111][3][5.2]") {
  using R = StoreReason;
  check({
      {kGet, "200 x" + kFresh, R::kOk},
      {"HEAD http://h/a HTTP/1.1\nHost: h", "200 x" + kFresh, R::kOk},
      {"PUT http://h/a HTTP/1.1\nHost: h", "200 x" + kFresh, R::kMethod},
      {"OPTIONS http://h/a HTTP/1.1\nHost: h", "200 x" + kFresh, R::kMethod},
      {"get http://h/a HTTP/1.1\nHost: h", "200 x" + kFresh, R::kMethod},
      {kGet + "\nCache-Control: no-store", "200 x" + kFresh, R::kRequestNoStore},
      {kGet, "200 x\nCache-Control: no-store, max-age=60", R::kNoStore},
      {kGet, "200 x\nCache-Control: No-Store=\"x\", max-age=60", R::kNoStore},
      {kGet, "200 x\nCache-Control: private, max-age=60", R::kPrivate},
      {kGet, "200 x\nCache-Control: private, public, max-age=60", R::kPrivate},
      {kGet, "200 x\nCache-Control: private=\"X-A\", max-age=60", R::kOk},
      {kGet, "200 x\nCache-Control: no-cache, max-age=60\nETag: \"a\"", R::kOk},
      {kGet, "200 x\nCache-Control: no-cache, max-age=60", R::kNoFreshness},
      {kGet, "200 x\nCache-Control: no-cache=\"a\", max-age=60", R::kOk},
      {kGet, "200 x\nETag: \"a\"", R::kOk},
      {kGet, "201 x\nETag: \"a\"", R::kNoFreshness},
      {kGet, "201 x\nCache-Control: public\nETag: \"a\"", R::kOk},
      {kGet, "200 x\nCache-Control: max-age=0", R::kNoFreshness},
      {kGet, "200 x\nCache-Control: max-age=0\nETag: \"a\"", R::kOk},
      {kGet, "200 x\nCache-Control: max-age=0, stale-if-error=9", R::kOk},
      {kGet, "200 x\nCache-Control: max-age=0, stale-while-revalidate=9", R::kOk},
      {kGet, "200 x\nExpires: 0", R::kNoFreshness},
      {kGet, "200 x\nVary: a, *" + kFresh, R::kVaryStar},
      {kGet, "200 x\nVary: a" + kFresh, R::kOk},
      {kGet, "200 x\nVary: a b" + kFresh, R::kVaryStar},
      {kGet, "200 x\nVary: Cookie;" + kFresh, R::kVaryStar},
      {kGet, "200 x\nSet-Cookie: a=b" + kFresh, R::kOk},
      {kGet, "206 x\nContent-Range: bytes 0-4/9\nContent-Length: 5" + kFresh, R::kOk},
      {kGet, "206 x\nContent-Range: bytes 0-4/9\nContent-Length: 6" + kFresh, R::kStatus},
      {kGet, "206 x\nContent-Range: bytes 0-4/*" + kFresh, R::kStatus},
      {kGet, "206 x\nContent-Range: bytes 4-0/9" + kFresh, R::kStatus},
      {kGet, "206 x\nContent-Type: multipart/byteranges; boundary=x" + kFresh, R::kStatus},
      {kGet, "206 x" + kFresh, R::kStatus},
  });
}

TEST_CASE("a cookie that was set is for the one who asked", "[rfc9111][7.3]") {
  using R = StoreReason;
  struct Row {
    std::string request;
    std::string response;
    R reason;
    bool strips = false;
  };
  const std::string set = "200 x\nSet-Cookie: a=b";
  const std::string with_cookie = kGet + "\nCookie: s=1";
  const std::vector<Row> rows = {
      {kGet, set + kFresh, R::kOk, true},
      {kGet, set + "\nExpires: " + date_text(kNow + 60), R::kOk, true},
      {kGet, set + "\nETag: \"v\"", R::kOk, true},
      {kGet, set + "\nCache-Control: max-age=60, public", R::kOk, false},
      {kGet, set + "\nCache-Control: s-maxage=60", R::kOk, false},
      {kGet, set + kLastModified, R::kSetCookie},
      {kGet, set + kLastModified + "\nCache-Control: public", R::kSetCookie},
      {with_cookie, set + kFresh, R::kSetCookie},
      {with_cookie, set + "\nCache-Control: s-maxage=60, public", R::kSetCookie},
      {with_cookie, "200 x" + kFresh, R::kOk, false},
      {kPost, set + kFresh + "\nContent-Location: /a", R::kOk, true},
      {kPost + "\nCookie: s=1", set + kFresh + "\nContent-Location: /a", R::kSetCookie},
  };
  for (const Row& row : rows) {
    CAPTURE(row.request, row.response);
    const StoreDecision decision = store_decision(row.request, row.response);
    CHECK(to_string(decision.reason) == to_string(row.reason));
    CHECK(decision.strips_set_cookie == row.strips);
    const bool sets = row.response.find("Set-Cookie") != std::string::npos;
    CHECK(
        store_decision(row.request, row.response, {.set_cookie = SetCookiePolicy::kRefuse}).ok() !=
        sets);
    const StoreDecision stored =
        store_decision(row.request, row.response, {.set_cookie = SetCookiePolicy::kStore});
    CHECK(stored.ok());
    CHECK_FALSE(stored.strips_set_cookie);
  }
}

TEST_CASE("must-understand lifts no-store where the status is understood", "[rfc9111][5.2.2.3]") {
  using R = StoreReason;
  check({
      {kGet, "200 x\nCache-Control: no-store, must-understand, max-age=60", R::kOk},
      {kGet, "404 x\nCache-Control: no-store, must-understand, max-age=60", R::kOk},
      {kGet, "299 x\nCache-Control: no-store, must-understand, max-age=60", R::kNotUnderstood},
      {kGet, "499 x\nCache-Control: must-understand, max-age=60", R::kNotUnderstood},
      {kGet, "599 x\nCache-Control: max-age=60", R::kOk},
  });
}

TEST_CASE("an authorised response needs a directive that lets it be shared", "[rfc9111][3.5]") {
  using R = StoreReason;
  const std::string get = kGet + "\nAuthorization: Basic x";
  check({
      {get, "200 x\nCache-Control: max-age=60", R::kAuthorization},
      {get, "200 x\nExpires: " + date_text(kNow + 60), R::kAuthorization},
      {get, "200 x\nCache-Control: max-age=60, public", R::kOk},
      {get, "200 x\nCache-Control: max-age=60, must-revalidate", R::kOk},
      {get, "200 x\nCache-Control: s-maxage=60", R::kOk},
      {get, "200 x\nCache-Control: max-age=60, proxy-revalidate", R::kAuthorization},
      {get, "200 x\nCache-Control: s-maxage=60, private", R::kPrivate},
  });
}

TEST_CASE("a POST's response is kept for GET only if it says that it is one", "[rfc9110][9.3.3]") {
  using R = StoreReason;
  check({
      {kPost, "200 x\nContent-Location: http://h/a" + kFresh, R::kOk},
      {kPost, "200 x\nContent-Location: /a" + kFresh, R::kOk},
      {kPost, "200 x\nContent-Location: HTTP://H:80/%61" + kFresh, R::kOk},
      {kPost, "200 x\nContent-Location: /b" + kFresh, R::kPost},
      {kPost, "200 x\nContent-Location: http://g/a" + kFresh, R::kPost},
      {kPost, "200 x" + kFresh, R::kPost},
      {kPost, "201 x\nContent-Location: /a" + kFresh, R::kPost},
      {kPost, "200 x\nContent-Location: /a" + kLastModified, R::kPost},
      {kPost, "200 x\nContent-Location: /a\nCache-Control: no-store, max-age=60", R::kNoStore},
  });
}

TEST_CASE("a stored head has what may be kept and what a hit needs", "[rfc9111][3.1]") {
  const std::string text = crlf(
      "HTTP/1.0 200 Fine\nServer: o\nAge: 5\nConnection: x-hop, close\nX-Hop: 1\n"
      "Keep-Alive: 5\nETag: \"v1\"\nTransfer-Encoding: chunked\nSet-Cookie: a=b\nSet-Cookie: c=d\n"
      "Cache-Control: max-age=60, no-cache=\"X-Secret\"\nX-Secret: s\nVia: 1.1 up\n"
      "Surrogate-Key: t1 t2\nProxy-Authenticate: x");
  const ResponseHead response = response_head(text);
  const ResponseDirectives directives = parse_response_directives(response.fields);
  std::string out = "old";
  StoredMeta meta;
  build_stored_head(response, directives, 17, kNow, {.strip_tags = true}, out, meta);
  CHECK(out ==
        "HTTP/1.1 200 Fine\r\nServer: o\r\nETag: \"v1\"\r\nSet-Cookie: a=b\r\n"
        "Set-Cookie: c=d\r\nCache-Control: max-age=60, no-cache=\"X-Secret\"\r\n"
        "Via: 1.1 up\r\nDate: " +
            date_text(kNow) + "\r\nContent-Length: 17\r\n");
  CHECK(out.substr(meta.etag_offset, meta.etag_bytes) == "\"v1\"");
  CHECK(meta.head_bytes == out.size());
  build_stored_head(response, directives, std::nullopt, kNow, {}, out, meta);
  CHECK(out.find("Surrogate-Key: t1 t2\r\n") != std::string::npos);
  CHECK(out.find("Content-Length") == std::string::npos);
}

TEST_CASE("an entity tag is found among lines that are stored as they came", "[rfc9111][3.1]") {
  const std::string text =
      crlf("HTTP/1.1 200 OK\nServer: o\nA: b\nETag: W/\"v1\"\nAge: 5\nC: d\nDate: today");
  std::string out;
  StoredMeta meta;
  build_stored_head(response_head(text), {}, 17, kNow, {}, out, meta);
  CHECK(out ==
        "HTTP/1.1 200 OK\r\nServer: o\r\nA: b\r\nETag: W/\"v1\"\r\nC: d\r\nDate: today\r\n"
        "Content-Length: 17\r\n");
  CHECK(out.substr(meta.etag_offset, meta.etag_bytes) == "W/\"v1\"");
  CHECK(meta.head_bytes == out.size());
}

TEST_CASE("a date that is there is never rewritten, and a 204 has no length",
          "[rfc9110][6.6.1][8.6]") {
  const std::string text = crlf("HTTP/1.1 204 x\nDate: yesterday\nContent-Length: 0");
  std::string out;
  StoredMeta meta;
  build_stored_head(response_head(text), {}, 0, kNow, {}, out, meta);
  CHECK(out == "HTTP/1.1 204 x\r\nDate: yesterday\r\n");
  CHECK(meta.etag_bytes == 0);
  ResponseHead head;
  read_stored_head(out, head);
  CHECK(head.status == 204);
  CHECK(head.reason == "x");
  CHECK(head.fields.size() == 1);
}

TEST_CASE("what an operator ignores by name forbids nothing, and all else does", "[rfc9111][3]") {
  const auto with = [](std::string_view name) {
    StoreOptions options;
    options.ignored.no_store = name == "no-store";
    options.ignored.is_private = name == "private";
    options.ignored.no_cache = name == "no-cache";
    options.ignored.set_cookie = name == "set-cookie";
    options.ignored.authorization = name == "authorization";
    options.ignores_vary = name == "vary";
    return options;
  };
  const std::string cookie = "\nCookie: a=1";
  const std::vector<std::tuple<std::string, std::string, std::string>> table = {
      {"authorization", kGet + "\nAuthorization: Basic x", "200 x" + kFresh},
      {"vary", kGet, "200 x\nVary: *" + kFresh},
      {"set-cookie", kGet + cookie, "200 x\nSet-Cookie: b=2" + kFresh},
  };
  for (const auto& [name, request, response] : table) {
    for (const std::string other :
         {"no-store", "private", "no-cache", "set-cookie", "authorization", "vary", "nothing"}) {
      CAPTURE(name, other);
      const StoreDecision decision = store_decision(request, response, with(other));
      CHECK(decision.ok() == (name == other));
      if (decision.ok()) CHECK(decision.strips_set_cookie == (name == "set-cookie"));
    }
  }
  ResponseDirectives directives;
  directives.no_store = directives.is_private = directives.no_cache = true;
  ResponseDirectives left = directives;
  leave_out(left, with("private").ignored);
  CHECK((left.no_store && !left.is_private && left.no_cache));
  left = directives;
  leave_out(left, {});
  CHECK((left.no_store && left.is_private && left.no_cache));
  StoreOptions refusing;
  refusing.refuses = true;
  CHECK(store_decision(kGet, "200 x" + kFresh, refusing).reason == StoreReason::kRule);
}

}  // namespace encore::http
