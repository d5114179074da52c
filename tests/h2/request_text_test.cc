#include "proxy/h2/request_text.h"

#include "proxy/http/framing.h"
#include "proxy/http/parser.h"
#include "proxy/http/uri.h"
#include "tests/catch.h"
#include "tests/h2/peer.h"

namespace encore::h2 {
namespace {

using test::FieldList;
using test::get;

struct Written {
  Malformed reason;
  std::string text;
};

Written write(const FieldList& fields, bool has_content = false, RequestText::Form form = {}) {
  RequestText text(form, ListSize(65536, 512));
  for (const auto& [name, value] : fields) REQUIRE(text.on_field(name, value));
  const Malformed reason = text.finish(has_content);
  return {reason, reason == Malformed::kNone ? text.text() : std::string()};
}

// As get(), with another value of a pseudo field.
FieldList with(std::string_view name, std::string_view value) {
  FieldList fields = get();
  for (auto& [each, old] : fields) {
    if (each == name) old = value;
  }
  return fields;
}

FieldList without(std::string_view name) {
  FieldList fields = get();
  std::erase_if(fields, [name](const auto& field) { return field.first == name; });
  return fields;
}

TEST_CASE("a request becomes the head of HTTP/1.1 that says the same", "[h2][rfc9113][8.3]") {
  CHECK(write(get("/a?b=c", {{"accept", "*/*"}, {"te", "trailers"}})).text ==
        "GET /a?b=c HTTP/1.1\r\nhost: a.example\r\naccept: */*\r\nte: trailers\r\n\r\n");
  CHECK(write(without(":authority")).text == "GET / HTTP/1.1\r\n\r\n");
  FieldList named = without(":authority");
  named.emplace_back("host", "b.example");
  CHECK(write(named).text == "GET / HTTP/1.1\r\nhost: b.example\r\n\r\n");
  CHECK(write(get("/", {{"host", "A.example"}})).text ==
        "GET / HTTP/1.1\r\nhost: a.example\r\n\r\n");
}

TEST_CASE("a forward proxy is asked for whole URIs", "[h2][rfc9113][8.3]") {
  const RequestText::Form form = {.is_absolute = true};
  CHECK(write(get("/x"), false, form).text ==
        "GET http://a.example/x HTTP/1.1\r\nhost: a.example\r\n\r\n");
  FieldList asterisk = with(":path", "*");
  asterisk[0].second = "OPTIONS";
  CHECK(write(asterisk, false, form).text ==
        "OPTIONS http://a.example HTTP/1.1\r\nhost: a.example\r\n\r\n");
  CHECK(write(asterisk).text == "OPTIONS * HTTP/1.1\r\nhost: a.example\r\n\r\n");
}

TEST_CASE("another scheme is left to the parser of targets", "[h2][rfc9113][8.3.1]") {
  CHECK(write(with(":scheme", "ftp")).text ==
        "GET ftp://a.example/ HTTP/1.1\r\nhost: a.example\r\n\r\n");
}

TEST_CASE("crumbs of a cookie are joined", "[h2][rfc9113][8.2.3]") {
  CHECK(write(get("/", {{"cookie", "a=b"}, {"x", "1"}, {"cookie", "c=d"}})).text ==
        "GET / HTTP/1.1\r\nhost: a.example\r\nx: 1\r\ncookie: a=b; c=d\r\n\r\n");
}

TEST_CASE("content is announced as HTTP/1.1 announces it", "[h2][rfc9113][8.1]") {
  CHECK(write(get("/", {{"content-length", "7"}}), true).text ==
        "GET / HTTP/1.1\r\nhost: a.example\r\ncontent-length: 7\r\n\r\n");
  CHECK(write(get(), true).text ==
        "GET / HTTP/1.1\r\nhost: a.example\r\ntransfer-encoding: chunked\r\n\r\n");
  CHECK(write(get("/", {{"content-length", "0"}})).reason == Malformed::kNone);
  CHECK(write(get("/", {{"content-length", "7"}})).reason == Malformed::kLengthMismatch);
}

TEST_CASE("a tunnel is asked for by CONNECT, another protocol by Upgrade", "[h2][rfc8441]") {
  const FieldList connect = {{":method", "CONNECT"}, {":authority", "a.example:443"}};
  CHECK(write(connect, true).text ==
        "CONNECT a.example:443 HTTP/1.1\r\nhost: a.example:443\r\n\r\n");
  FieldList extended = with(":method", "CONNECT");
  extended.insert(extended.begin(), {":protocol", "websocket"});
  extended.emplace_back("content-length", "5");
  CHECK(write(extended, true).text ==
        "GET / HTTP/1.1\r\nhost: a.example\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
  CHECK(write(extended, true, {.takes_protocols = false}).reason ==
        Malformed::kMisplacedPseudoField);
}

TEST_CASE("what is malformed is refused with its reason", "[h2][rfc9113][8.1.1]") {
  struct Row {
    Malformed reason;
    FieldList fields;
  };
  const std::string nul("a\0b", 3);
  const std::vector<Row> rows = {
      {Malformed::kBadName, get("/", {{"Accept", "*/*"}})},
      {Malformed::kBadName, get("/", {{"a b", "c"}})},
      {Malformed::kBadName, get("/", {{"a:b", "c"}})},
      {Malformed::kBadName, get("/", {{"a\r\nb", "c"}})},
      {Malformed::kBadName, get("/", {{nul, "c"}})},
      {Malformed::kBadName, get("/", {{"", "c"}})},
      {Malformed::kBadName, get("/", {{"caf\xc3\xa9", "c"}})},
      {Malformed::kBadValue, get("/", {{"a", "b\r\nc: d"}})},
      {Malformed::kBadValue, get("/", {{"a", "b\rc"}})},
      {Malformed::kBadValue, get("/", {{"a", "b\nc"}})},
      {Malformed::kBadValue, get("/", {{"a", nul}})},
      {Malformed::kBadValue, get("/", {{"a", " b"}})},
      {Malformed::kBadValue, get("/", {{"a", "b\t"}})},
      {Malformed::kBadValue, get("/", {{"cookie", "b\x01\n"}})},
      {Malformed::kConnectionField, get("/", {{"connection", "close"}})},
      {Malformed::kConnectionField, get("/", {{"keep-alive", "timeout=5"}})},
      {Malformed::kConnectionField, get("/", {{"proxy-connection", "close"}})},
      {Malformed::kConnectionField, get("/", {{"transfer-encoding", "chunked"}})},
      {Malformed::kConnectionField, get("/", {{"upgrade", "websocket"}})},
      {Malformed::kBadTe, get("/", {{"te", "gzip"}})},
      {Malformed::kBadTe, get("/", {{"te", "trailers, deflate"}})},
      {Malformed::kUnknownPseudoField, get("/", {})},
      {Malformed::kUnknownPseudoField, get("/", {})},
      {Malformed::kRepeatedPseudoField, get("/", {})},
      {Malformed::kLatePseudoField, get("/", {{"a", "b"}, {":path", "/"}})},
      {Malformed::kMissingPseudoField, without(":method")},
      {Malformed::kMissingPseudoField, without(":scheme")},
      {Malformed::kMissingPseudoField, without(":path")},
      {Malformed::kMissingPseudoField, {}},
      {Malformed::kMissingPseudoField, {{":method", "CONNECT"}}},
      {Malformed::kMisplacedPseudoField, with(":method", "CONNECT")},
      {Malformed::kMisplacedPseudoField, get("/", {})},
      {Malformed::kBadMethod, with(":method", "")},
      {Malformed::kBadMethod, with(":method", "GET /evil HTTP/1.1\r\nx: y\r\n\r\nGET")},
      {Malformed::kBadMethod, with(":method", "G ET")},
      {Malformed::kBadScheme, with(":scheme", "")},
      {Malformed::kBadScheme, with(":scheme", "http://x/ HTTP/1.1\r\n")},
      {Malformed::kBadScheme, with(":scheme", "1http")},
      {Malformed::kBadAuthority, with(":authority", "")},
      {Malformed::kBadAuthority, with(":authority", "user@a.example")},
      {Malformed::kBadAuthority, with(":authority", "a.example/evil")},
      {Malformed::kBadAuthority, with(":authority", "a.example\r\nx: y")},
      {Malformed::kBadAuthority, with(":authority", "a.example b")},
      {Malformed::kBadAuthority, with(":authority", "a.example:70000")},
      {Malformed::kBadPath, with(":path", "")},
      {Malformed::kBadPath, with(":path", "a")},
      {Malformed::kBadPath, with(":path", "*")},
      {Malformed::kBadPath, with(":path", "http://b.example/")},
      {Malformed::kBadPath, with(":path", "/ HTTP/1.1\r\nx: y")},
      {Malformed::kBadPath, with(":path", "/a b")},
      {Malformed::kBadPath, with(":path", "/a\x7f")},
      {Malformed::kBadPath, with(":path", "/a\tb")},
      {Malformed::kBadPath, with(":path", std::string("/a\0b", 4))},
      {Malformed::kHostDiffers, get("/", {{"host", "b.example"}})},
      {Malformed::kHostDiffers, get("/", {{"host", "a.example:80"}})},
      {Malformed::kHostDiffers, get("/", {{"host", ""}})},
      {Malformed::kBadLength, get("/", {{"content-length", "-1"}})},
      {Malformed::kBadLength, get("/", {{"content-length", "1,1"}})},
      {Malformed::kBadLength, get("/", {{"content-length", ""}})},
      {Malformed::kBadLength, get("/", {{"content-length", "1"}, {"content-length", "1"}})},
      {Malformed::kBadLength, get("/", {{"content-length", "99999999999999999999"}})},
  };
  std::vector<Row> all = rows;
  for (Row& row : all) {
    // Pseudo fields stand in front.
    auto& front = row.fields;
    const bool is_plain = front == get();
    if (is_plain && row.reason == Malformed::kUnknownPseudoField)
      front.insert(front.begin(), {":x", ""});
    if (is_plain && row.reason == Malformed::kRepeatedPseudoField)
      front.insert(front.begin(), {":path", "/"});
    if (is_plain && row.reason == Malformed::kMisplacedPseudoField)
      front.insert(front.begin(), {":protocol", "websocket"});
  }
  for (const Row& row : all) {
    CAPTURE(to_string(row.reason), row.fields);
    CHECK(to_string(write(row.fields, true).reason) == to_string(row.reason));
  }
  FieldList status = get();
  status.insert(status.begin(), {":status", "200"});
  CHECK(write(status).reason == Malformed::kUnknownPseudoField);
  CHECK(write({{":method", "CONNECT"}, {":authority", "a.example:1"}, {":path", "/"}}).reason ==
        Malformed::kMisplacedPseudoField);
  CHECK(write({{":method", "CONNECT"}, {":authority", "a.example:1/x"}}).reason ==
        Malformed::kBadAuthority);
  FieldList protocol = with(":method", "CONNECT");
  protocol.insert(protocol.begin(), {":protocol", "web socket\r\nx: y"});
  CHECK(write(protocol).reason == Malformed::kBadProtocol);
  FieldList host = without(":authority");
  host.emplace_back("host", "a.example/evil");
  CHECK(write(host).reason == Malformed::kBadAuthority);
}

TEST_CASE("what is written is a head, the same, and ends where it ends", "[h2][rfc9112]") {
  const std::vector<FieldList> good = {
      get("/a?b#", {{"x", "y\x01z"}}),  get("/%20", {{"a", ""}}),
      with(":path", "/caf\xc3\xa9"),    with(":method", "PRI"),
      with(":authority", "[::1]:8080"), get("/", {{"content-length", "3"}})};
  for (const FieldList& fields : good) {
    CAPTURE(fields);
    const Written written = write(fields, true);
    REQUIRE(written.reason == Malformed::kNone);
    http::RequestHead head;
    http::ParseError error;
    const auto status = http::parse_request(written.text, http::Limits{}, head, error);
    if (status == http::ParseStatus::kBad) {
      CHECK(error.status == 400);
      continue;
    }
    REQUIRE(status == http::ParseStatus::kComplete);
    CHECK(head.head_size == written.text.size());
    CHECK(head.method_text == fields[0].second);
    CHECK(head.target == fields[3].second);
    CHECK(http::request_framing(head).kind != http::BodyKind::kError);
  }
}

TEST_CASE("trailers have the same checks, and no pseudo fields", "[h2][rfc9113][8.1]") {
  const auto malformed = [](const FieldList& fields) {
    TrailerText text(ListSize(1000, 10));
    for (const auto& [name, value] : fields) REQUIRE(text.on_field(name, value));
    return text.malformed();
  };
  CHECK(malformed({{"grpc-status", "0"}}) == Malformed::kNone);
  CHECK(malformed({{":path", "/"}}) == Malformed::kMisplacedPseudoField);
  CHECK(malformed({{"A", "b"}}) == Malformed::kBadName);
  CHECK(malformed({{"a", "b\r\nc: d"}}) == Malformed::kBadValue);
  CHECK(malformed({{"transfer-encoding", "chunked"}}) == Malformed::kConnectionField);
}

TEST_CASE("a list costs 32 bytes a field beside its text", "[h2][rfc9113][6.5.2]") {
  ListSize by_bytes(2 * 34, 10);
  CHECK(by_bytes.add("a", "b"));
  CHECK(by_bytes.add("a", "b"));
  CHECK_FALSE(by_bytes.add("", ""));
  ListSize by_fields(1000, 2);
  CHECK(by_fields.add("a", "b"));
  CHECK(by_fields.add("a", "b"));
  CHECK_FALSE(by_fields.add("a", "b"));
  CHECK(by_fields.is_out_of_fields());
}

}  // namespace
}  // namespace encore::h2
