#include "proxy/http/conditional.h"

#include "proxy/http/stored_head.h"
#include "tests/catch.h"
#include "tests/http/heads.h"
#include "tests/rfc9111/clocks.h"
#include "tests/rfc9111/lines.h"

namespace encore::http {
namespace {

using namespace std::chrono_literals;

const UnixSeconds kModified = kNow - 1000;
const Validators kBoth{.etag = "\"v1\"", .last_modified = kModified, .date = kNow};
const Validators kWeak{.etag = "W/\"v1\"", .last_modified = kModified, .date = kModified};
const Validators kDateOnly{.etag = "", .last_modified = kModified, .date = kNow};
const Validators kNothing{.etag = "", .last_modified = kNoDate, .date = kNow};

Condition evaluate(const std::string& fields, const Validators& stored, unsigned status = 200) {
  const std::string text = crlf("GET / HTTP/1.1\n" + fields);
  return evaluate_conditions(request_head(text), stored, status, kNow);
}

}  // namespace

TEST_CASE("entity tags are compared strongly and weakly", "[rfc9110][8.8.3.2]") {
  struct Row {
    std::string_view a;
    std::string_view b;
    bool strong;
    bool weak;
  };
  const Row table[] = {
      {"W/\"1\"", "W/\"1\"", false, true},
      {"W/\"1\"", "W/\"2\"", false, false},
      {"W/\"1\"", "\"1\"", false, true},
      {"\"1\"", "\"1\"", true, true},
      {"\"1\"", "\"2\"", false, false},
      {"w/\"1\"", "\"1\"", false, false},
      {"1", "\"1\"", false, false},
      {"1", "1", false, true},
      {"", "", false, false},
      {"\"\"", "\"\"", true, true},
  };
  for (const Row& row : table) {
    CAPTURE(row.a, row.b);
    CHECK(strong_match(row.a, row.b) == row.strong);
    CHECK(weak_match(row.a, row.b) == row.weak);
  }
}

TEST_CASE("an entity tag has no control, space or quote within, wherever it stands",
          "[rfc9110][8.8.3]") {
  for (std::size_t size = 0; size <= 40; ++size) {
    const std::string tag = "\"" + std::string(size, 'a') + "\"";
    CHECK(is_etag(tag));
    CHECK(is_etag("W/" + tag));
    for (std::size_t place = 1; place <= size; ++place) {
      for (const char c : {'\0', '\t', '\x1f', ' ', '"', '\x7f'}) {
        std::string none = tag;
        none[place] = c;
        CHECK_FALSE(is_etag(none));
      }
      for (const char c : {'!', '#', '~', '\x80', '\xff'}) {
        std::string other = tag;
        other[place] = c;
        CHECK(is_etag(other));
      }
    }
  }
  for (const std::string_view none : {"", "\"", "W/", "W/\"", "a", "a\"", "\"a", "w/\"a\""}) {
    CAPTURE(none);
    CHECK_FALSE(is_etag(none));
  }
}

TEST_CASE("conditions are evaluated in their order", "[rfc9110][13.2.2][rfc9111][4.3.2]") {
  struct Row {
    std::string fields;
    Validators stored;
    Condition condition;
  };
  using C = Condition;
  const auto since = [](UnixSeconds time) { return "If-Modified-Since: " + date_text(time); };
  const Row table[] = {
      {"A: b", kBoth, C::kSend},
      {"If-None-Match: \"v1\"", kBoth, C::kNotModified},
      {"If-None-Match: W/\"v1\"", kBoth, C::kNotModified},
      {"If-None-Match: \"v1\"", kWeak, C::kNotModified},
      {"If-None-Match: \"v2\"", kBoth, C::kSend},
      {"If-None-Match: \"V1\"", kBoth, C::kSend},
      {"If-None-Match: w/\"v1\"", kBoth, C::kSend},
      {"If-None-Match: W\\\"v1\"", kBoth, C::kSend},
      {"If-None-Match: v1", kBoth, C::kSend},
      {"If-None-Match: \"v0\", \"v1\"", kBoth, C::kNotModified},
      {"If-None-Match: \"v0\",W/\"v1\" , \"v3\"", kBoth, C::kNotModified},
      {"If-None-Match: \"a\\\", \"v1\"", kBoth, C::kNotModified},
      {"If-None-Match: \"a,\", \"v1\"", kBoth, C::kNotModified},
      {"If-None-Match: \"a, \"v1\"", kBoth, C::kSend},
      {"If-None-Match: \"v0\"\nIf-None-Match: \"v1\"", kBoth, C::kNotModified},
      {"If-None-Match: *", kBoth, C::kNotModified},
      {"If-None-Match: *", kNothing, C::kNotModified},
      {"If-None-Match: \"\"", kNothing, C::kSend},
      {"If-None-Match: \"v1\"", kDateOnly, C::kSend},
      // If-Modified-Since is ignored if there is an If-None-Match.
      {"If-None-Match: \"v2\"\n" + since(kNow), kBoth, C::kSend},
      {"If-None-Match: \"v1\"\n" + since(kModified - 1), kBoth, C::kNotModified},
      {since(kModified), kBoth, C::kNotModified},
      {since(kModified + 1), kBoth, C::kNotModified},
      {since(kModified - 1), kBoth, C::kSend},
      {"If-Modified-Since: yesterday", kBoth, C::kSend},
      {since(kModified) + "\n" + since(kModified), kBoth, C::kSend},
      // The client may have the other of two versions of one second.
      {since(kModified), kWeak, C::kSend},
      {since(kModified + 1), kWeak, C::kNotModified},
      {since(kNow), kNothing, C::kNotModified},
      {since(kNow - 1), kNothing, C::kSend},
      {"If-Match: \"v1\"", kBoth, C::kForward},
      {"If-Match: \"v1\"\nIf-None-Match: \"v1\"", kBoth, C::kForward},
      {"If-Unmodified-Since: " + date_text(kNow), kBoth, C::kForward},
  };
  for (const Row& row : table) {
    CAPTURE(row.fields, row.stored.etag);
    CHECK(evaluate(row.fields, row.stored) == row.condition);
  }
  CHECK(evaluate("If-None-Match: *", kBoth, 404) == C::kSend);
  CHECK(evaluate("If-None-Match: *", kBoth, 301) == C::kSend);
  CHECK(evaluate("If-None-Match: *", kBoth, 203) == C::kNotModified);
}

TEST_CASE("If-Range needs a validator that matches strongly", "[rfc9110][13.1.5]") {
  const auto holds = [](const std::string& fields, const Validators& stored) {
    const std::string text = crlf("GET / HTTP/1.1\nRange: bytes=0-1\n" + fields);
    return if_range_holds(request_head(text), stored, kNow);
  };
  CHECK(holds("A: b", kNothing));
  CHECK(holds("If-Range: \"v1\"", kBoth));
  CHECK_FALSE(holds("If-Range: \"v2\"", kBoth));
  CHECK_FALSE(holds("If-Range: W/\"v1\"", kBoth));
  CHECK_FALSE(holds("If-Range: W/\"v1\"", kWeak));
  CHECK_FALSE(holds("If-Range: v1", kBoth));
  CHECK_FALSE(holds("If-Range: \"v1\"\nIf-Range: \"v1\"", kBoth));
  CHECK(holds("If-Range: " + date_text(kModified), kBoth));
  CHECK_FALSE(holds("If-Range: " + date_text(kModified + 1), kBoth));
  CHECK_FALSE(holds("If-Range: " + date_text(kModified - 1), kBoth));
  // A date within the second of the response is no strong validator (RFC 9110 8.8.2.2).
  CHECK_FALSE(holds("If-Range: " + date_text(kModified), kWeak));
  CHECK_FALSE(holds("If-Range: yesterday", kNothing));
}

TEST_CASE("our own validation carries both validators", "[rfc9111][4.3.1]") {
  std::string out = "A: b\r\n";
  append_validation_fields(kBoth, out);
  CHECK(out ==
        "A: b\r\nIf-None-Match: \"v1\"\r\nIf-Modified-Since: " + date_text(kModified) + "\r\n");
  out.clear();
  append_validation_fields(kDateOnly, out);
  CHECK(out == "If-Modified-Since: " + date_text(kModified) + "\r\n");
  out.clear();
  append_validation_fields(kNothing, out);
  CHECK(out.empty());
}

TEST_CASE("a 304 confirms the response whose validators it names", "[rfc9111][4.3.4]") {
  const auto received = [](std::string_view etag, UnixSeconds modified) {
    return Validators{.etag = etag, .last_modified = modified, .date = kNow};
  };
  CHECK(not_modified_matches(kBoth, received("\"v1\"", kNoDate)));
  CHECK(not_modified_matches(kBoth, received("W/\"v1\"", kNoDate)));
  CHECK(not_modified_matches(kWeak, received("W/\"v1\"", kNoDate)));
  CHECK_FALSE(not_modified_matches(kBoth, received("\"v2\"", kNoDate)));
  CHECK_FALSE(not_modified_matches(kBoth, received("\"v2\"", kModified + 5)));
  // A strong date identifies the representation by itself; one of this very second does not.
  CHECK(not_modified_matches(kBoth, received("\"v2\"", kModified)));
  CHECK_FALSE(not_modified_matches(
      kBoth, {.etag = "\"v2\"", .last_modified = kModified, .date = kModified}));
  const Validators fast{.etag = "\"v1\"", .last_modified = kNow - 59, .date = kNow};
  CHECK_FALSE(not_modified_matches(fast, received("\"v2\"", kNow - 59)));
  CHECK(not_modified_matches(kWeak, received("", kModified)));
  CHECK_FALSE(not_modified_matches({.last_modified = kModified, .date = kModified},
                                   received("", kModified)));
  CHECK(not_modified_matches(kBoth, received("\"v1\"", kModified + 5)));
  CHECK(not_modified_matches(kBoth, received("", kModified)));
  CHECK_FALSE(not_modified_matches(kBoth, received("", kModified + 5)));
  CHECK(not_modified_matches(kDateOnly, received("\"v2\"", kNoDate)));
  CHECK(not_modified_matches(kBoth, received("", kNoDate)));
  CHECK_FALSE(not_modified_matches(kNothing, received("", kNoDate)));
}

TEST_CASE("a HEAD shows whether the stored response is outdated, or nothing", "[rfc9111][4.3.5]") {
  using enum HeadEvidence;
  const auto shown = [](const std::string& fields) {
    const std::string text = crlf("HTTP/1.1 200 OK\n" + fields);
    return compare_head(kBoth, response_head(text), 10, kNow, ValidatorStrength::kUsual);
  };
  CHECK(shown("A: b") == kNothing);
  CHECK(shown("ETag: \"v1\"") == kSame);
  CHECK(shown("Content-Length: 10") == kSameLength);
  CHECK(shown("Last-Modified: " + date_text(kModified)) == kSame);
  CHECK(shown("ETag: \"v1\"\nContent-Length: 10\nLast-Modified: " + date_text(kModified)) == kSame);
  CHECK(shown("ETag: \"v2\"") == kChange);
  CHECK(shown("ETag: \"v1\"\nContent-Length: 11") == kChange);
  CHECK(shown("Content-Length: 11") == kChange);
  CHECK(shown("Last-Modified: " + date_text(kModified + 1)) == kChange);
}

TEST_CASE("a HEAD's validators count as far as they prove something", "[rfc9111][4.3.5]") {
  using enum HeadEvidence;
  const auto shown = [](const Validators& stored, const std::string& fields,
                        ValidatorStrength proof) {
    const std::string text = crlf("HTTP/1.1 200 OK\n" + fields);
    return compare_head(stored, response_head(text), 10, kNow, proof);
  };
  const Validators dated{.last_modified = kModified, .date = kModified};
  const std::string same_date = "Last-Modified: " + date_text(kModified);
  // Nor is a length enough with a date that proves nothing.
  CHECK(shown(dated, same_date + "\nContent-Length: 10", ValidatorStrength::kUsual) == kNothing);
  CHECK(shown(kWeak, "ETag: W/\"v1\"", ValidatorStrength::kUsual) == kSame);
  CHECK(shown(kWeak, "ETag: W/\"v1\"", ValidatorStrength::kStrong) == kNothing);
  CHECK(shown(kBoth, "Content-Length: 10", ValidatorStrength::kStrong) == kNothing);
  CHECK(shown(kBoth, "ETag: \"v1\"", ValidatorStrength::kStrong) == kSame);
  CHECK(shown(kDateOnly, same_date, ValidatorStrength::kStrong) == kSame);
  CHECK(shown(kWeak, "ETag: W/\"v2\"", ValidatorStrength::kStrong) == kChange);
}

TEST_CASE("a doubt takes a strong validator, and expiry a date of another second",
          "[rfc9110][8.8.2.2]") {
  const auto asked = [](Validators validators, ValidatorStrength proof) {
    std::string out;
    append_validation_fields(sufficient(validators, proof), out);
    return out;
  };
  const auto dated = [](UnixSeconds apart) {
    return Validators{.etag = "", .last_modified = kNow - apart, .date = kNow};
  };
  const auto since = [](UnixSeconds apart) {
    return "If-Modified-Since: " + date_text(kNow - apart) + "\r\n";
  };
  CHECK(asked(dated(-1), ValidatorStrength::kUsual).empty());
  CHECK(asked(dated(0), ValidatorStrength::kUsual).empty());
  CHECK(asked(dated(1), ValidatorStrength::kUsual) == since(1));
  CHECK(asked(dated(59), ValidatorStrength::kStrong).empty());
  CHECK(asked(dated(60), ValidatorStrength::kStrong) == since(60));
  CHECK(asked(kWeak, ValidatorStrength::kUsual) == "If-None-Match: W/\"v1\"\r\n");
  CHECK(asked(kWeak, ValidatorStrength::kStrong).empty());
  CHECK(asked(kBoth, ValidatorStrength::kStrong)
            .starts_with("If-None-Match: \"v1\"\r\nIf-Modified-Since: "));
  CHECK(asked({.last_modified = kNow - 100}, ValidatorStrength::kUsual).empty());
}

TEST_CASE("a 304 makes the date of what it confirms no stronger", "[rfc9110][8.8.2.2]") {
  StoredMeta meta;
  meta.last_modified = kNow - 1000;
  meta.date = kNow;  // the 304's
  const std::string head = "ETag: W/\"v1\"\r\n";
  CHECK(stored_validators(meta, head).date == kNow - 941);
  CHECK(is_strong_date(meta.last_modified, stored_validators(meta, head).date));
  meta.etag_offset = 6;
  meta.etag_bytes = 6;
  CHECK_FALSE(is_strong_date(meta.last_modified, stored_validators(meta, head).date));
  meta.flags = StoredMeta::kSureDate;
  CHECK(stored_validators(meta, head).date == kNow);
}

TEST_CASE("a 304 from the cache has the fields that a client's cache needs", "[rfc9110][15.4.5]") {
  const std::string text = crlf(
      "HTTP/1.1 200 OK\nContent-Type: a\nETag: \"v1\"\nDate: d\nCache-Control: c\nExpires: e\n"
      "Vary: v\nContent-Location: l\nLast-Modified: m\nSet-Cookie: s\nContent-Length: 5\n"
      "CDN-Cache-Control: t");
  std::string out;
  build_not_modified(response_head(text), out);
  CHECK(out ==
        "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nDate: d\r\nCache-Control: c\r\n"
        "Expires: e\r\nVary: v\r\nContent-Location: l\r\nCDN-Cache-Control: t\r\n");
  const std::string dated = crlf("HTTP/1.1 200 OK\nLast-Modified: m");
  build_not_modified(response_head(dated), out);
  CHECK(out == "HTTP/1.1 304 Not Modified\r\nLast-Modified: m\r\n");
}

namespace {

// The stored response after the response to a validation by this request.
Freshened freshened(const std::string& stored, const std::string& update, std::string& out,
                    const std::string& request_fields = "", const StoreOptions& store = {}) {
  const std::string request_text = crlf("GET http://h/a HTTP/1.1\nHost: h" + request_fields);
  const RequestHead request = request_head(request_text);
  const RequestDirectives directives = parse_request_directives(request.fields);
  Target target;
  const VaryOptions vary;
  REQUIRE(resolve_target(request, Scheme::kHttp, target) == TargetStatus::kOk);
  return freshen(stored, response_head(update),
                 {.request = request,
                  .target = target,
                  .directives = directives,
                  .targets = {},
                  .vary = vary,
                  .exchange = exchange()},
                 store, HeadOptions{}, out);
}

}  // namespace

TEST_CASE("a 304 updates what is stored, but not what belongs to the body",
          "[rfc9111][3.2][4.3.4]") {
  const std::string stored =
      "HTTP/1.1 200 Fine\r\nServer: o\r\nETag: \"v1\"\r\nX-A: 1\r\nX-A: 2\r\nX-B: old\r\n"
      "Content-Encoding: gzip\r\nContent-MD5: m\r\nCache-Control: max-age=1\r\nSet-Cookie: a\r\n"
      "Date: " +
      date_text(kNow - 100) + "\r\nContent-Length: 17\r\n";
  const std::string text = crlf(
      "HTTP/1.1 304 Not Modified\nETag: W/\"v1\"\nx-a: 3\nX-New: n\nContent-Length: 0\n"
      "Content-Encoding: br\nContent-Range: bytes 0-1/2\nContent-MD5: x\nContent-Digest: x\n"
      "Cache-Control: max-age=60\nSet-Cookie: b\nAge: 7\nConnection: X-Hop\nX-Hop: 1\n"
      "Transfer-Encoding: x\nDate: " +
      date_text(kNow));
  std::string out;
  const StoredMeta meta = freshened(stored, text, out).meta;
  CHECK(out ==
        "HTTP/1.1 200 Fine\r\nServer: o\r\nETag: \"v1\"\r\nX-B: old\r\nContent-Encoding: gzip\r\n"
        "Content-Length: 17\r\nx-a: 3\r\nX-New: n\r\nContent-MD5: x\r\nContent-Digest: x\r\n"
        "Cache-Control: max-age=60\r\nDate: " +
            date_text(kNow) + "\r\n");
  CHECK(out.substr(meta.etag_offset, meta.etag_bytes) == "\"v1\"");
  CHECK(meta.head_bytes == out.size());
  CHECK(meta.status == 200);
  CHECK(meta.date == kNow);
  CHECK(current_age(meta, kArrived) == 7);
  CHECK(is_fresh(meta, kArrived + 52s));
  CHECK_FALSE(is_fresh(meta, kArrived + 53s));
}

TEST_CASE("a 304 without a date gives the time of its arrival",
          "[rfc9111][4.3.4][rfc9110][6.6.1]") {
  const std::string stored =
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=10\r\nDate: " + date_text(kNow - 100) +
      "\r\nETag: \"v1\"\r\n";
  std::string out;
  const std::string text = crlf("HTTP/1.1 304 x\nETag: \"v2\"");
  const StoredMeta meta = freshened(stored, text, out).meta;
  CHECK(out == "HTTP/1.1 200 OK\r\nCache-Control: max-age=10\r\nETag: \"v2\"\r\nDate: " +
                   date_text(kNow) + "\r\n");
  CHECK(is_fresh(meta, kArrived));
}

TEST_CASE("what a validation says is judged as what was stored with it", "[rfc9111][3][4.3.4]") {
  using R = StoreReason;
  const std::string stored =
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=10\r\nVary: b, a\r\nETag: \"v1\"\r\nDate: " +
      date_text(kNow - 100) + "\r\nContent-Length: 3\r\n";
  struct Row {
    std::string request;
    std::string update;
    R reason;
    std::string names;
  };
  const std::vector<Row> rows = {
      {"", "ETag: \"v1\"", R::kOk, "a,b"},
      {"", "Set-Cookie: s=2", R::kOk, "a,b"},
      {"\nCookie: s=1", "ETag: \"v1\"", R::kOk, "a,b"},
      {"\nCookie: s=1", "Set-Cookie: s=2", R::kSetCookie, "a,b"},
      {"", "Cache-Control: private, max-age=60", R::kPrivate, "a,b"},
      {"", "Cache-Control: no-store", R::kNoStore, "a,b"},
      {"", "Cache-Control: no-cache", R::kOk, "a,b"},
      {"", "Vary: a, b", R::kOk, "a,b"},
      {"", "Vary: Cookie", R::kOk, "cookie"},
      {"", "Vary: *", R::kVaryStar, "*"},
      {"", "Vary: Cookie, Accept Encoding", R::kVaryStar, "*"},
      {"\nCache-Control: no-store", "X: y", R::kRequestNoStore, "a,b"},
      {"\nAuthorization: x", "X: y", R::kAuthorization, "a,b"},
      {"\nAuthorization: x", "Cache-Control: public, max-age=9", R::kOk, "a,b"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.request, row.update);
    std::string out;
    const Freshened result =
        freshened(stored, crlf("HTTP/1.1 304 x\n" + row.update), out, row.request);
    CHECK(to_string(result.decision.reason) == to_string(row.reason));
    CHECK(result.names == row.names);
    CHECK(out.find("Set-Cookie") == std::string::npos);
    CHECK(result.meta.head_bytes == out.size());
    CHECK(out.substr(result.meta.etag_offset, result.meta.etag_bytes) == "\"v1\"");
  }
}

TEST_CASE("what a validation keeps from others leaves what is stored", "[rfc9111][5.2.2.7]") {
  const std::string stored =
      "HTTP/1.1 200 OK\r\nSet-Cookie: old=1\r\nX-User: ann\r\nCache-Control: public\r\n"
      "ETag: \"v1\"\r\nDate: " +
      date_text(kNow - 100) + "\r\n";
  std::string out;
  Freshened result =
      freshened(stored, crlf("HTTP/1.1 304 x\nCache-Control: public, max-age=9"), out);
  CHECK(out.find("Set-Cookie: old=1\r\n") != std::string::npos);
  result = freshened(stored, crlf("HTTP/1.1 304 x\nCache-Control: max-age=9"), out);
  CHECK(out.find("Set-Cookie") == std::string::npos);
  CHECK(out.find("X-User: ann\r\n") != std::string::npos);
  CHECK(out.substr(result.meta.etag_offset, result.meta.etag_bytes) == "\"v1\"");
  CHECK(result.meta.head_bytes == out.size());
  result = freshened(
      stored, crlf("HTTP/1.1 304 x\nX-User: bob\nCache-Control: max-age=9, private=\"x-user\""),
      out, "", {.set_cookie = SetCookiePolicy::kStore});
  CHECK(out.find("Set-Cookie: old=1\r\n") != std::string::npos);
  CHECK(out.find("X-User") == std::string::npos);
}

}  // namespace encore::http
