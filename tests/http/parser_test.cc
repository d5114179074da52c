#include "proxy/http/parser.h"

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/http/heads.h"

namespace encore::http {
namespace {

using namespace std::string_literals;

struct BadHead {
  std::string bytes;
  unsigned status;
  ParseReason reason;
};

const Limits kSmall{.head_bytes_max = 200, .target_bytes_max = 40, .fields_max = 4};

std::string get(const std::string& fields) { return "GET / HTTP/1.1\r\n" + fields + "\r\n"; }
std::string ok(const std::string& fields) { return "HTTP/1.1 200 OK\r\n" + fields + "\r\n"; }

}  // namespace

TEST_CASE("a request head is read as it stands", "[http][rfc9112][3]") {
  const std::string text =
      "GET http://h/p?q HTTP/1.1\r\nHost: h\r\nX-Empty:\r\nAccept:\t a , b \t\r\n"
      "cache-CONTROL: no-cache\r\nX-Obs: \xc3\xa4\r\n\r\nbody";
  const RequestHead head = request_head(text);
  CHECK(head.method == Method::kGet);
  CHECK(head.method_text == "GET");
  CHECK(head.target == "http://h/p?q");
  CHECK(head.version == Version::kHttp11);
  CHECK(text.substr(head.head_size) == "body");
  REQUIRE(head.fields.size() == 5);
  CHECK(head.fields.value(FieldId::kHost) == "h");
  CHECK(head.fields.find("x-empty")->value.empty());
  CHECK(head.fields.value(FieldId::kAccept) == "a , b");
  CHECK(head.fields.find(FieldId::kCacheControl)->name == "cache-CONTROL");
  CHECK(head.fields.find("x-obs")->value == "\xc3\xa4");
  CHECK_FALSE(head.fields.has(FieldId::kRange));
}

TEST_CASE("a response head is read as it stands", "[http][rfc9112][4]") {
  const std::string text = "HTTP/1.0 404 Not  Found\r\nAge: 1\r\n\r\n";
  const ResponseHead head = response_head(text);
  CHECK(head.status == 404);
  CHECK(head.reason == "Not  Found");
  CHECK(head.version == Version::kHttp10);
  CHECK(head.head_size == text.size());
  CHECK(response_head("HTTP/1.1 299\r\n\r\n").status == 299);
  CHECK(response_head("HTTP/1.1 999 \r\n\r\n").reason.empty());
}

TEST_CASE("one empty line before a request is skipped, a second is not", "[http][rfc9112][2.2]") {
  const RequestHead head = request_head("\r\nGET / HTTP/1.1\r\n\r\n");
  CHECK(head.head_size == 20);
  RequestHead second;
  ParseError error;
  CHECK(parse_request("\r\n\r\nGET / HTTP/1.1\r\n\r\n", Limits{}, second, error) ==
        ParseStatus::kBad);
}

TEST_CASE("a higher minor version is read as 1.1", "[http][rfc9110][2.5]") {
  CHECK(request_head("GET / HTTP/1.7\r\n\r\n").version == Version::kHttp11);
  CHECK(request_head("GET / HTTP/1.0\r\n\r\n").version == Version::kHttp10);
}

TEST_CASE("ambiguous and malformed requests are refused with the status they deserve",
          "[http][rfc9112][smuggling]") {
  const std::vector<BadHead> table = {
      {"GET / HTTP/1.1\nHost: a\n\n", 400, ParseReason::kBareLf},
      {"GET /\n", 400, ParseReason::kBareLf},
      {"GET\n", 400, ParseReason::kBareLf},
      {get("Host: a\n"), 400, ParseReason::kBareLf},
      {get("Host: a\r\nX: b\nY: c\r\n"), 400, ParseReason::kBareLf},
      {get("Host\n: a\r\n"), 400, ParseReason::kBareLf},
      {get("Host: a\rX: b\r\n"), 400, ParseReason::kBareCr},
      {get("Host: a\r\r\n"), 400, ParseReason::kBareCr},
      {"GET / HTTP/1.1\rHost: a\r\n\r\n", 400, ParseReason::kBareCr},
      {"GET / HTTP/1.1\r\nHost: a\r\n\rX", 400, ParseReason::kBareCr},
      {get("Host: a\r\n b\r\n"), 400, ParseReason::kObsFold},
      {get("Host: a\r\n\tb\r\n"), 400, ParseReason::kObsFold},
      {get(" Host: a\r\n"), 400, ParseReason::kLeadingSpace},
      {get("\tHost: a\r\n"), 400, ParseReason::kLeadingSpace},
      {get("Host : a\r\n"), 400, ParseReason::kSpaceBeforeColon},
      {get("Content-Length\t: 5\r\n"), 400, ParseReason::kSpaceBeforeColon},
      {get(": a\r\n"), 400, ParseReason::kEmptyName},
      {get("Host\r\n"), 400, ParseReason::kNoColon},
      {get("Ho st: a\r\n"), 400, ParseReason::kBadName},
      {get("H\xc3\xb6st: a\r\n"), 400, ParseReason::kBadName},
      {get("Content\rLength: 1\r\n"), 400, ParseReason::kBareCr},
      {get("X\0Y: a\r\n"s), 400, ParseReason::kControlCharacter},
      {get("Host: a\0b\r\n"s), 400, ParseReason::kControlCharacter},
      {get("Host: a\x0b\r\n"), 400, ParseReason::kControlCharacter},
      {get("Host: a\x7f\r\n"), 400, ParseReason::kControlCharacter},
      {get("Transfer-Encoding: \x0b"
           "chunked\r\n"),
       400, ParseReason::kControlCharacter},
      {" GET / HTTP/1.1\r\n\r\n", 400, ParseReason::kBadMethod},
      {"G@T / HTTP/1.1\r\n\r\n", 400, ParseReason::kBadMethod},
      {"\x16\x03\x01\x02", 400, ParseReason::kBadMethod},
      {"GET\t/ HTTP/1.1\r\n\r\n", 400, ParseReason::kBadMethod},
      {"GET\r\n\r\n", 400, ParseReason::kBadMethod},
      {"GET  / HTTP/1.1\r\n\r\n", 400, ParseReason::kBadTarget},
      {"GET /\r\n\r\n", 400, ParseReason::kBadTarget},
      {"GET /a\tb HTTP/1.1\r\n\r\n", 400, ParseReason::kBadTarget},
      {"GET /a#b HTTP/1.1\r\n\r\n", 400, ParseReason::kBadTarget},
      {"GET /\xc3\xa4 HTTP/1.1\r\n\r\n", 400, ParseReason::kBadTarget},
      {"GET /\0 HTTP/1.1\r\n\r\n"s, 400, ParseReason::kBadTarget},
      {"GET / HTTP/1.1 \r\n\r\n", 400, ParseReason::kBadVersion},
      {"GET /  HTTP/1.1\r\n\r\n", 400, ParseReason::kBadVersion},
      {"GET /a b HTTP/1.1\r\n\r\n", 400, ParseReason::kBadVersion},
      {"GET / http/1.1\r\n\r\n", 400, ParseReason::kBadVersion},
      {"GET / HTTP/1,1\r\n\r\n", 400, ParseReason::kBadVersion},
      {"GET / HTTP/11.1\r\n\r\n", 400, ParseReason::kBadVersion},
      {"GET / HTTP/1.10\r\n\r\n", 400, ParseReason::kBadVersion},
      {"GET / HTTX", 400, ParseReason::kBadVersion},
      {"GET / HTTP/2.0\r\n\r\n", 505, ParseReason::kUnsupportedVersion},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, ParseReason::kUnsupportedVersion},
      {"GET / HTTP/0.9\r\n\r\n", 505, ParseReason::kUnsupportedVersion},
      {"GET /" + std::string(40, 'a') + " HTTP/1.1\r\n\r\n", 414, ParseReason::kTargetTooLong},
      {"GET /" + std::string(400, 'a'), 414, ParseReason::kTargetTooLong},
      {get("X: " + std::string(200, 'a') + "\r\n"), 431, ParseReason::kHeadTooLarge},
      {"GET / HTTP/1.1\r\nX: " + std::string(200, 'a'), 431, ParseReason::kHeadTooLarge},
      {std::string(200, 'G'), 431, ParseReason::kHeadTooLarge},
      {get("A:1\r\nB:1\r\nC:1\r\nD:1\r\nE:1\r\n"), 431, ParseReason::kTooManyFields},
  };
  for (const BadHead& row : table) {
    CAPTURE(row.bytes);
    RequestHead head;
    ParseError error;
    REQUIRE(parse_request(row.bytes, kSmall, head, error) == ParseStatus::kBad);
    CHECK(to_string(error.reason) == to_string(row.reason));
    CHECK(error.status == row.status);
  }
}

TEST_CASE("a malformed response is a bad gateway", "[http][rfc9112][smuggling]") {
  const std::vector<BadHead> table = {
      {"HTTP/1.1 200 OK\nA: b\n\n", 502, ParseReason::kBareLf},
      {ok("A: b\n"), 502, ParseReason::kBareLf},
      {ok("A: b\rC: d\r\n"), 502, ParseReason::kBareCr},
      {ok("A: b\r\n c\r\n"), 502, ParseReason::kObsFold},
      {ok(" A: b\r\n"), 502, ParseReason::kLeadingSpace},
      {ok("A : b\r\n"), 502, ParseReason::kSpaceBeforeColon},
      {ok(": b\r\n"), 502, ParseReason::kEmptyName},
      {ok("A\r\n"), 502, ParseReason::kNoColon},
      {ok("A: b\0\r\n"s), 502, ParseReason::kControlCharacter},
      {"\r\nHTTP/1.1 200 OK\r\n\r\n", 502, ParseReason::kBadVersion},
      {"ICY 200 OK\r\n\r\n", 502, ParseReason::kBadVersion},
      {"HTTP/2 200 OK\r\n\r\n", 502, ParseReason::kBadVersion},
      {"HTTP/2.0 200 OK\r\n\r\n", 502, ParseReason::kUnsupportedVersion},
      {"HTTP/1.1  200 OK\r\n\r\n", 502, ParseReason::kBadStatusLine},
      {"HTTP/1.1 20 OK\r\n\r\n", 502, ParseReason::kBadStatusLine},
      {"HTTP/1.1 099 OK\r\n\r\n", 502, ParseReason::kBadStatusLine},
      {"HTTP/1.1 2000 OK\r\n\r\n", 502, ParseReason::kBadStatusLine},
      {"HTTP/1.1\r\n\r\n", 502, ParseReason::kBadStatusLine},
      {"HTTP/1.1 200 O\0K\r\n\r\n"s, 502, ParseReason::kBadStatusLine},
      {ok("X: " + std::string(200, 'a') + "\r\n"), 502, ParseReason::kHeadTooLarge},
      {ok("A:1\r\nB:1\r\nC:1\r\nD:1\r\nE:1\r\n"), 502, ParseReason::kTooManyFields},
  };
  for (const BadHead& row : table) {
    CAPTURE(row.bytes);
    ResponseHead head;
    ParseError error;
    REQUIRE(parse_response(row.bytes, kSmall, head, error) == ParseStatus::kBad);
    CHECK(to_string(error.reason) == to_string(row.reason));
    CHECK(error.status == row.status);
  }
}

TEST_CASE("each limit holds what it says and not one more", "[http][limits]") {
  RequestHead head;
  ParseError error;
  const auto status = [&](const std::string& bytes) {
    return parse_request(bytes, kSmall, head, error);
  };
  const std::string target = "GET /" + std::string(39, 'a') + " HTTP/1.1\r\n\r\n";
  CHECK(status(target) == ParseStatus::kComplete);
  CHECK(status(get("A:1\r\nB:1\r\nC:1\r\nD:1\r\n")) == ParseStatus::kComplete);
  const std::size_t padding = kSmall.head_bytes_max - get("X: \r\n").size();
  CHECK(status(get("X: " + std::string(padding, 'a') + "\r\n")) == ParseStatus::kComplete);
  CHECK(status(get("X: " + std::string(padding + 1, 'a') + "\r\n")) == ParseStatus::kBad);
}

TEST_CASE("a head cut anywhere is incomplete, and complete with its last byte", "[http]") {
  const std::string text =
      "\r\nPOST /some/longer/path?with=query HTTP/1.1\r\nHost: example.org:8080\r\n"
      "User-Agent: a client with a name of some length (and a comment)\r\nA:\r\n\r\n";
  RequestHead head;
  ParseError error;
  for (std::size_t size = 0; size < text.size(); ++size) {
    CAPTURE(size);
    // A copy of its own size, so that a sanitizer sees any byte read past its end.
    const std::vector<char> part(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size));
    REQUIRE(parse_request({part.data(), part.size()}, Limits{}, head, error) ==
            ParseStatus::kIncomplete);
  }
  REQUIRE(parse_request(text, Limits{}, head, error) == ParseStatus::kComplete);
  CHECK(head.method == Method::kPost);
}

TEST_CASE("reads of any size come to the same end as one", "[http]") {
  const std::vector<std::string> texts = {
      "GET /a HTTP/1.1\r\nHost: a\r\nB: c\r\n\r\n", "\r\nGET / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\nB: c\r\n\r\n",    "GET / HTTP/1.1\r\nHost: a\r\nB : c\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\rB: c\r\n\r\n",  "GET / HTTP/1.1\r\nHost: a\r\n\rX\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n"s,
  };
  for (const std::string& text : texts) {
    RequestHead whole;
    ParseError whole_error;
    const ParseStatus expected = parse_request(text, Limits{}, whole, whole_error);
    for (std::size_t step = 1; step < text.size(); ++step) {
      CAPTURE(text, step);
      ParseProgress progress;
      RequestHead head;
      ParseError error;
      ParseStatus status = ParseStatus::kIncomplete;
      for (std::size_t size = step; status == ParseStatus::kIncomplete; size += step) {
        status =
            parse_request(std::string_view(text).substr(0, size), Limits{}, progress, head, error);
        REQUIRE((status != ParseStatus::kIncomplete || size < text.size()));
      }
      CHECK(status == expected);
      CHECK(error.reason == whole_error.reason);
      if (expected == ParseStatus::kComplete) CHECK(head.head_size == whole.head_size);
    }
  }
}

TEST_CASE("every known field name is found in any case, and only exactly", "[http]") {
  const auto upper = [](std::string text) {
    for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    return text;
  };
  for (unsigned i = 1; i < static_cast<unsigned>(FieldId::kCount_); ++i) {
    const auto id = static_cast<FieldId>(i);
    const std::string name(field_name(id));
    CAPTURE(name);
    CHECK(classify_field(name) == id);
    CHECK(classify_field(upper(name)) == id);
    for (std::size_t at = 0; at < name.size(); ++at) {
      for (const int bit : {0x01, 0x40, 0x80}) {
        std::string other = name;
        other[at] = static_cast<char>(other[at] ^ bit);
        CHECK(classify_field(other) != id);
      }
    }
    // '-' with 0x20 cleared is CR, which must not pass for it.
    if (const auto dash = name.find('-'); dash != std::string::npos) {
      std::string other = name;
      other[dash] = '\r';
      CHECK(classify_field(other) == FieldId::kOther);
    }
  }
  CHECK(classify_field("") == FieldId::kOther);
  CHECK(classify_field("x") == FieldId::kOther);
}

TEST_CASE("a trailer section is fields to its end", "[http][rfc9112][7.1.2]") {
  Fields fields;
  ParseError error;
  REQUIRE(parse_fields("A: b\r\nC: d\r\n", Limits{}, fields, error));
  CHECK(fields.size() == 2);
  CHECK(parse_fields("", Limits{}, fields, error));
  CHECK(fields.empty());
  for (const char* bad :
       {"A: b", "A b\r\n", "A : b\r\n", " A: b\r\n", "A: b\n", "A: b\r\n c\r\n"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_fields(bad, Limits{}, fields, error));
  }
}

TEST_CASE("members of a list are split at commas outside quotes", "[http][rfc9110][5.6.1]") {
  const FieldText text("Via: a,, \"b,\\\"c\" ;x , d\nVia: e");
  std::vector<std::string> members;
  text.fields().for_each_member(FieldId::kVia,
                                [&](std::string_view member) { members.emplace_back(member); });
  CHECK(members == std::vector<std::string>{"a", "\"b,\\\"c\" ;x", "d", "e"});
  std::string out;
  CHECK(unquote("\"a\\\"b\\c\"", out));
  CHECK(out == "a\"bc");
  for (const char* bad : {"", "\"", "a", "\"a", "\"a\\\"", "\"a\"b\""})
    CHECK_FALSE(unquote(bad, out));
}

TEST_CASE("bytes beyond ASCII in a target are taken as percent-encoded", "[http][rfc3986][2.1]") {
  RequestHead head;
  ParseError error;
  ParseProgress progress;
  std::string encoded;
  const auto parsed = [&](std::string_view text, std::size_t target_bytes_max) {
    progress = {};
    encoded.clear();
    return parse_lax_request(text, {.target_bytes_max = target_bytes_max}, progress, head, error,
                             encoded);
  };
  const std::string text = "GET /\xc3\xa4/%c3?\xff HTTP/1.1\r\nX: \xc3\xa4\r\n\r\n";
  REQUIRE(parsed(text + "more", 15) == ParseStatus::kComplete);
  CHECK(encoded == "GET /%C3%A4/%c3?%FF HTTP/1.1\r\nX: \xc3\xa4\r\n\r\n");
  CHECK(head.target == "/%C3%A4/%c3?%FF");
  CHECK(head.target.data() == encoded.data() + 4);
  CHECK(head.head_size == text.size());
  // The limit is that of what goes on.
  CHECK(parsed(text, 14) == ParseStatus::kBad);
  CHECK(error.status == 414);
  CHECK(parsed("GET /a HTTP/1.1\r\n\r\n", 14) == ParseStatus::kComplete);
  CHECK(encoded.empty());
  for (const std::string bad : {"GET /\xc3\x7f", "GET /\xc3#", "GET \xc3\x01", "GET /\xc3\n"}) {
    CAPTURE(bad);
    CHECK(parsed(bad + " HTTP/1.1\r\n\r\n", 100) == ParseStatus::kBad);
  }
  CHECK(parsed("GET /\xc3", 100) == ParseStatus::kIncomplete);
}

}  // namespace encore::http
