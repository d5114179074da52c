#include "proxy/http/framing.h"

#include "tests/catch.h"
#include "tests/http/heads.h"

namespace encore::http {
namespace {

struct Row {
  std::string_view fields;
  BodyKind kind;
  std::uint64_t length;
  unsigned status;
  FramingReason reason;
};

std::string lines(std::string_view fields) {
  std::string text;
  for (const char c : fields) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  return text.empty() ? text : text + "\r\n";
}

}  // namespace

TEST_CASE("a request's body is framed in one way or refused", "[http][rfc9112][6.3][smuggling]") {
  using enum BodyKind;
  using R = FramingReason;
  const Row table[] = {
      {"", kNone, 0, 0, R::kNone},
      {"Content-Length: 5", kLength, 5, 0, R::kNone},
      {"Content-Length: 0", kLength, 0, 0, R::kNone},
      {"Content-Length: 0005", kLength, 5, 0, R::kNone},
      {"Content-Length: 9223372036854775807", kLength, 9223372036854775807U, 0, R::kNone},
      {"Content-Length: 9223372036854775808", kError, 0, 400, R::kLengthTooLarge},
      {"Content-Length: 99999999999999999999999", kError, 0, 400, R::kLengthTooLarge},
      {"Content-Length: 5\nContent-Length: 6", kError, 0, 400, R::kRepeatedLength},
      {"Content-Length: 5\nContent-Length: 5", kError, 0, 400, R::kRepeatedLength},
      {"Content-Length: 5, 5", kError, 0, 400, R::kRepeatedLength},
      {"Content-Length: 5,", kError, 0, 400, R::kRepeatedLength},
      {"Content-Length:", kError, 0, 400, R::kBadLength},
      {"Content-Length: -5", kError, 0, 400, R::kBadLength},
      {"Content-Length: +5", kError, 0, 400, R::kBadLength},
      {"Content-Length: 0x5", kError, 0, 400, R::kBadLength},
      {"Content-Length: 5 5", kError, 0, 400, R::kBadLength},
      {"Content-Length: 5.0", kError, 0, 400, R::kBadLength},
      {"Content-Length: five", kError, 0, 400, R::kBadLength},
      {"Transfer-Encoding: chunked", kChunked, 0, 0, R::kNone},
      {"Transfer-Encoding: Chunked", kChunked, 0, 0, R::kNone},
      {"Transfer-Encoding: ,chunked,", kError, 0, 400, R::kBadTransferEncoding},
      {"Transfer-Encoding: chunked\nTransfer-Encoding:", kError, 0, 400, R::kBadTransferEncoding},
      {"Transfer-Encoding: chunked\nContent-Length: 5", kError, 0, 400,
       R::kLengthAndTransferEncoding},
      {"Content-Length: 5\nTransfer-Encoding: identity", kError, 0, 400,
       R::kLengthAndTransferEncoding},
      {"Transfer-Encoding:", kError, 0, 400, R::kBadTransferEncoding},
      {"Transfer-Encoding: chunked, chunked", kError, 0, 400, R::kBadTransferEncoding},
      {"Transfer-Encoding: chunked\nTransfer-Encoding: chunked", kError, 0, 400,
       R::kBadTransferEncoding},
      {"Transfer-Encoding: \"chunked\"", kError, 0, 400, R::kBadTransferEncoding},
      {"Transfer-Encoding: chun ked", kError, 0, 400, R::kBadTransferEncoding},
      {"Transfer-Encoding: chunked;q=1", kError, 0, 501, R::kUnknownCoding},
      {"Transfer-Encoding: xchunked", kError, 0, 501, R::kUnknownCoding},
      {"Transfer-Encoding: identity", kError, 0, 501, R::kUnknownCoding},
      {"Transfer-Encoding: gzip, chunked", kError, 0, 501, R::kUnknownCoding},
      {"Transfer-Encoding: chunked, gzip", kError, 0, 400, R::kBadTransferEncoding},
      {"Transfer-Encoding: chunked\nTransfer-Encoding: identity", kError, 0, 400,
       R::kBadTransferEncoding},
  };
  for (const Row& row : table) {
    CAPTURE(row.fields);
    const std::string text = "POST / HTTP/1.1\r\n" + lines(row.fields) + "\r\n";
    const Framing framing = request_framing(request_head(text));
    CHECK(framing.kind == row.kind);
    CHECK(framing.length == row.length);
    CHECK(framing.status == row.status);
    CHECK(framing.reason == row.reason);
  }
  const std::string old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
  CHECK(request_framing(request_head(old)).reason == R::kTransferEncodingIn10);
  CHECK(request_framing(request_head(old)).status == 400);
}

TEST_CASE("a response's body is framed by its fields, or runs to the close",
          "[http][rfc9112][6.3][smuggling]") {
  using enum BodyKind;
  using R = FramingReason;
  const Row table[] = {
      {"", kUntilClose, 0, 0, R::kNone},
      {"Content-Length: 5", kLength, 5, 0, R::kNone},
      {"Transfer-Encoding: chunked", kChunked, 0, 0, R::kNone},
      {"Transfer-Encoding: gzip", kError, 0, 502, R::kUnknownCoding},
      {"Transfer-Encoding: gzip, chunked", kError, 0, 502, R::kUnknownCoding},
      {"Transfer-Encoding: chunked, gzip", kError, 0, 502, R::kUnknownCoding},
      {"Transfer-Encoding: chunked, chunked", kError, 0, 502, R::kBadTransferEncoding},
      {"Transfer-Encoding:", kError, 0, 502, R::kBadTransferEncoding},
      {"Transfer-Encoding: chun ked", kError, 0, 502, R::kBadTransferEncoding},
      {"Content-Length: 5\nContent-Length: 6", kError, 0, 502, R::kRepeatedLength},
      {"Content-Length: 5, 5", kError, 0, 502, R::kRepeatedLength},
      {"Content-Length: x", kError, 0, 502, R::kBadLength},
      {"Content-Length: 18446744073709551616", kError, 0, 502, R::kLengthTooLarge},
      {"Transfer-Encoding: chunked\nContent-Length: 5", kError, 0, 502,
       R::kLengthAndTransferEncoding},
  };
  for (const Row& row : table) {
    CAPTURE(row.fields);
    const std::string text = "HTTP/1.1 200 OK\r\n" + lines(row.fields) + "\r\n";
    const Framing framing = response_framing(Method::kGet, response_head(text));
    CHECK(framing.kind == row.kind);
    CHECK(framing.length == row.length);
    CHECK(framing.status == row.status);
    CHECK(framing.reason == row.reason);
    CHECK(framing.reusable == (row.kind == kLength || row.kind == kChunked));
  }
  const std::string old = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  CHECK(response_framing(Method::kGet, response_head(old)).status == 502);
}

TEST_CASE("some responses have no body whatever their fields say", "[http][rfc9112][6.3]") {
  struct NoBody {
    Method method;
    std::string_view status;
    std::string_view field;
    bool reusable;
  };
  const NoBody table[] = {
      {Method::kHead, "200", "Content-Length: 5", true},
      {Method::kHead, "200", "Transfer-Encoding: chunked", true},
      {Method::kHead, "200", "A: b", true},
      {Method::kGet, "304", "Content-Length: 5", true},
      {Method::kGet, "204", "A: b", true},
      {Method::kGet, "204", "Content-Length: 0", true},
      {Method::kGet, "204", "Content-Length: 5", false},
      {Method::kGet, "103", "Transfer-Encoding: chunked", false},
      {Method::kConnect, "200", "Content-Length: 5", true},
  };
  for (const NoBody& row : table) {
    CAPTURE(row.status, row.field);
    const std::string text =
        "HTTP/1.1 " + std::string(row.status) + " x\r\n" + std::string(row.field) + "\r\n\r\n";
    const Framing framing = response_framing(row.method, response_head(text));
    CHECK(framing.kind == BodyKind::kNone);
    CHECK(framing.reusable == row.reusable);
  }
}

}  // namespace encore::http
