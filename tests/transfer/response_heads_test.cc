// Heads of forwarded responses, against a plain second formulation; and the small parts of objects.
#include <random>
#include <string>
#include <vector>

#include "base/recycled.h"
#include "filter/hash.h"
#include "proxy/http/head_writer.h"
#include "proxy/transfer/response.h"
#include "tests/catch.h"
#include "tests/http/heads.h"

namespace encore::server {
namespace {

struct Line {
  const char* name;
  const char* value;
  bool is_dropped = false;   // hop by hop, or written anew
  bool is_private = false;   // for the one who asked alone
  bool is_withheld = false;  // likewise, where it is withheld
};

const std::vector<Line> kLines = {
    {"X-A", "1"},
    {"X-Own", "2", false, false, true},
    {"Set-Cookie", "a=1", false, true},
    {"Content-Length", "5", true},
    {"Age", "7", true},
    {"Date", "Sun, 06 Nov 1994 08:49:37 GMT"},
    {"Connection", "x-hop", true},
    {"X-Hop", "3", true},
    {"Keep-Alive", "timeout=5", true},
    {"Transfer-Encoding", "chunked", true},
    {"Cache-Control", "max-age=60"},
    {"Content-Type", "a/b"},
    {"Trailer", "X-T"},
};

TEST_CASE("a forwarded head has what a plain list of its fields has", "[transfer][response]") {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::vector<const Line*> lines;
    for (const Line& line : kLines) {
      const auto times = random() % 3;
      // X-Hop is of one hop where Connection is there, and that comes but once.
      for (unsigned i = 0; i < std::min<unsigned>(static_cast<unsigned>(times), 1); ++i) {
        lines.push_back(&line);
      }
    }
    const bool has_connection = std::ranges::any_of(
        lines, [](const Line* line) { return std::string(line->name) == "Connection"; });
    std::ranges::shuffle(lines, random);
    const bool withholds = random() % 2 == 0;
    std::string text = "HTTP/1.1 404 Not There\r\n";
    std::string common = text;
    std::string ages;
    std::string own;
    bool has_date = false;
    for (const Line* line : lines) {
      const std::string name = line->name;
      const std::string whole = name + ": " + line->value + "\r\n";
      text += whole;
      has_date = has_date || name == "Date";
      if (name == "Age") ages += whole;
      if (line->is_dropped && (name != "X-Hop" || has_connection)) continue;
      (line->is_private || (line->is_withheld && withholds) ? own : common) += whole;
    }
    text += "\r\n";
    const bool has_length = random() % 2 == 0;
    if (has_length) common += "Content-Length: 4711\r\n";
    if (!has_date) common += "Date: now\r\n";
    const std::vector<std::string> withheld =
        withholds ? std::vector<std::string>{"x-own", "content-length"}
                  : std::vector<std::string>();
    const http::ResponseHead head = http::response_head(text);
    std::string built = "something before";
    ForwardHead more;
    if (has_length) more.length = 4711;
    more.http_date = "now";
    more.withheld = withheld;
    const CommonHead made = build_forward_head(head, more, {}, built);
    CAPTURE(text);
    CHECK(built == common + ages + own);
    CHECK(made.bytes == common.size());
    CHECK(built.substr(made.content_type.offset, made.content_type.bytes) ==
          head.fields.value(http::FieldId::kContentType));
    CHECK(private_lines(head, withheld, {}) == own);
    // StoreWriter stores that part, where it has a length and no cookie is kept.
    if (!has_length || !has_date || head.fields.has(http::FieldId::kSetCookie)) continue;
    http::ResponseDirectives directives;
    directives.stripped_fields = withheld;
    http::StoredMeta meta;
    std::string stored;
    http::build_stored_head(head, directives, 4711, 0, {}, stored, meta);
    CHECK(stored == common);
  }
}

TEST_CASE("the place of a forwarded content type is that of the first, unless it is withheld",
          "[transfer][response]") {
  const auto placed = [](const std::string& lines, const std::vector<std::string>& withheld = {}) {
    std::string built;
    const std::string text = "HTTP/1.1 200 OK\r\n" + lines + "\r\n";
    const http::ResponseHead head = http::response_head(text);
    const ValuePlace place =
        build_forward_head(head, {.http_date = "now", .withheld = withheld}, {}, built)
            .content_type;
    return built.substr(place.offset, place.bytes);
  };
  CHECK(placed("X: 1\r\nContent-Type:a/b\r\nX: 2\r\n") == "a/b");
  CHECK(placed("Content-Type: a/b\r\nContent-Type: c/d\r\n") == "a/b");
  CHECK(placed("Content-Type:\r\nContent-Type: c/d\r\n").empty());
  CHECK(placed("Content-Type: a/b\r\n", {"content-type"}).empty());
  for (const std::size_t size : {65'535U, 65'536U}) {
    const std::string type(size, 't');
    http::ResponseHead head;
    head.status = 200;
    head.fields.add("Content-Type", type);
    std::string built;
    const ValuePlace place = build_forward_head(head, {}, {}, built).content_type;
    CHECK(place.bytes == (size == 65'536 ? 0 : size));
  }
}

TEST_CASE("the number of a variant is the same in every process", "[transfer][response]") {
  CHECK(variant_of("", "") == 0);
  CHECK(variant_of("", "key") == 0);
  CHECK(variant_of("names", "key") ==
        filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, "names\nkey").lo);
}

TEST_CASE("the place of a body on disk is two numbers in a fixed form", "[transfer][response]") {
  const LargeBody body{.number = 0x0102030405060708, .length = 0x1112131415161718};
  const std::string bytes = write_large_body(body);
  CHECK(bytes == std::string("\x08\x07\x06\x05\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11"));
  ObjectMeta meta;
  const std::string before = "HTTP/1.1 200 OK\r\nX-T: 1\r\n";
  const std::string head = before + bytes + "tag\n";
  meta.http.head_bytes = 17;
  meta.tag_bytes = 4;
  const HeadParts none{.meta = meta, .head = head};
  CHECK_FALSE(none.large_body());
  meta.large_bytes = kLargeBodyBytes;
  const HeadParts parts{.meta = meta, .head = head};
  CHECK(parts.large_body() == body);
  CHECK(parts.stored_head() == "HTTP/1.1 200 OK\r\n");
  CHECK(parts.trailers() == "X-T: 1\r\n");
  CHECK(parts.tags() == "tag\n");
}

TEST_CASE("an entity tag is placed where it is found, and as far as its place holds it",
          "[transfer][response]") {
  const auto placed = [](const std::string& head, const std::string& etag) {
    http::StoredMeta meta;
    meta.etag_offset = 3;
    meta.etag_bytes = 2;
    place_etag(head, etag, meta);
    return std::pair(meta.etag_offset, meta.etag_bytes);
  };
  const std::pair<std::uint32_t, std::uint16_t> unchanged{3, 2};
  CHECK(placed("ETag: \"a\"\r\n", "\"a\"") == std::pair<std::uint32_t, std::uint16_t>{6, 3});
  CHECK(placed("ETag: \"a\"\r\n", "") == unchanged);
  CHECK(placed("ETag: \"a\"\r\n", "\"b\"") == unchanged);
  for (const std::size_t size : {65'535U, 65'536U}) {
    const std::string etag(size, 'e');
    CHECK((placed("x" + etag, etag) == unchanged) == (size == 65'536));
    ObjectMeta meta;
    meta.type_bytes = 7;
    place_content_type("HTTP/1.1 200 OK\r\nContent-Type: " + etag + "\r\n", meta);
    CHECK(meta.type_bytes == (size == 65'536 ? 0 : size));
    CHECK(meta.type_offset == (size == 65'536 ? 0 : 31));
  }
}

TEST_CASE("a response that is cleared keeps the room of its head, unless that is much",
          "[transfer][response]") {
  for (const std::size_t size : {std::size_t{200}, kReusedTextMax + 1}) {
    SharedResponse response;
    response.head = std::string(size, 'h');
    const std::size_t room = response.head.capacity();
    response.variant_key = "key";
    response.clear();
    CHECK(response.head.empty());
    CHECK(response.variant_key.empty());
    CHECK((response.head.capacity() == room) == (size == 200));
  }
}

TEST_CASE("trailers have the limits of a head", "[transfer][response]") {
  http::Limits limits;
  limits.fields_max = 2;
  const auto drops = [](const http::Field&) { return false; };
  std::string out;
  CHECK(forwardable_trailers("A: 1\r\nB: 2\r\n", limits, drops, out));
  CHECK(out == "A: 1\r\nB: 2\r\n");
  CHECK_FALSE(forwardable_trailers("A: 1\r\nB: 2\r\nC: 3\r\n", limits, drops, out));
}

TEST_CASE("an empty body has a size for admission, and an unknown one has none",
          "[transfer][response]") {
  SharedResponse response;
  CHECK(response.size_for_admission() == 0);
  response.length = 0;
  CHECK(response.size_for_admission() == 1);
  response.length = 7;
  CHECK(response.size_for_admission() == 7);
}

}  // namespace
}  // namespace encore::server
