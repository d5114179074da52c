#include "proxy/h2/field_encoder.h"

#include <array>

#include "proxy/h2/field_decoder.h"
#include "tests/catch.h"
#include "tests/h2/peer.h"

namespace encore::h2 {
namespace {

test::FieldList decoded(const std::string& block) {
  struct Collected final : FieldSink {
    bool on_field(std::string_view name, std::string_view value) override {
      fields.emplace_back(name, value);
      return true;
    }
    test::FieldList fields;
  } collected;
  FieldDecoder decoder;
  REQUIRE(decoder.decode(block, true, collected) == FieldDecoder::Status::kEnd);
  return collected.fields;
}

TEST_CASE("lines of all lengths are encoded as they are", "[h2][rfc7541][5.1]") {
  for (const std::size_t name : {1U, 2U, 126U, 127U, 128U, 254U, 255U, 300U}) {
    for (const std::size_t value : {0U, 1U, 126U, 127U, 128U, 254U, 255U, 16510U, 20000U}) {
      std::string block = "before";
      std::optional<std::uint64_t> length;
      const std::string line =
          std::string(name, 'N') + ":" + std::string(value, 'v') + "\r\nAge: 1\r\n";
      append_fields(line + line, block, length);
      REQUIRE(block.starts_with("before"));
      const auto fields = decoded(block.substr(6));
      REQUIRE(fields.size() == 4);
      CHECK(fields[2].first == std::string(name, 'n'));
      CHECK(fields[2].second == std::string(value, 'v'));
      CHECK(fields[3] == std::pair<std::string, std::string>{"age", "1"});
    }
  }
}

TEST_CASE("lines as short as may be are encoded as they are", "[h2][rfc7541]") {
  std::string block;
  std::optional<std::uint64_t> length;
  append_fields("a:\r\nb:c\r\n\r\nno field\r\n:d\r\ne: f", block, length);
  CHECK(decoded(block) == test::FieldList{{"a", ""}, {"b", "c"}, {"e", "f"}});
  CHECK_FALSE(length);
}

TEST_CASE("names of the static table go by their index", "[h2][rfc7541][appendix-a]") {
  std::string block;
  std::optional<std::uint64_t> length;
  append_fields("Content-Length: 12\r\nVia: 1.1 x\r\nWWW-Authenticate: a\r\nAccept: b\r\n", block,
                length);
  CHECK(block == std::string("\x0f\x0d\x02") + "12" + "\x0f\x2d\x05" + "1.1 x" + "\x0f\x2e\x01" +
                     "a" + "\x0f\x04\x01" + "b");
  CHECK(length == 12U);
}

TEST_CASE("secrets enter no table on their way", "[h2][rfc7541][7.1.3]") {
  std::string block;
  std::optional<std::uint64_t> length;
  append_fields("Set-Cookie: a=b\r\nCookie: c\r\nAuthorization: d\r\n", block, length);
  CHECK(block == std::string("\x1f\x28\x03") + "a=b" + "\x1f\x11\x01" + "c" + "\x1f\x08\x01" + "d");
}

TEST_CASE("statuses are read of the status line", "[h2][rfc7541]") {
  for (const unsigned status : {103U, 200U, 204U, 206U, 304U, 400U, 404U, 500U, 599U}) {
    std::string block;
    std::optional<std::uint64_t> length;
    const std::string line = "HTTP/1.1 " + std::to_string(status) + "\r\n";
    const std::array<std::string_view, 2> pieces = {line, "A: b\r\n"};
    CHECK(append_response(pieces, block, length) == status);
    CHECK(decoded(block) == test::FieldList{{":status", std::to_string(status)}, {"a", "b"}});
  }
  std::string block;
  std::optional<std::uint64_t> length;
  for (const std::string_view bad : {"", "HTTP/1.1", "HTTP/1.1 2x0 OK\r\n", "HTTP/1.1 \r\n"}) {
    CHECK(append_response(std::span(&bad, 1), block, length) == 0);
  }
}

}  // namespace
}  // namespace encore::h2
