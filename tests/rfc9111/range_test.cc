#include "proxy/http/range.h"

#include "proxy/http/conditional.h"
#include "proxy/http/stored_head.h"
#include "tests/catch.h"
#include "tests/http/heads.h"

namespace encore::http {
namespace {

struct Resolved {
  RangeOutcome outcome;
  std::vector<ByteRange> ranges;
};

Resolved resolve(std::string_view value, std::uint64_t length) {
  Resolved result{};
  result.outcome = resolve_range(value, length, {.ranges_max = 4}, result.ranges);
  return result;
}

}  // namespace

TEST_CASE("a Range is resolved against the length", "[rfc9110][14.1.2][14.2]") {
  struct Row {
    std::string_view value;
    RangeOutcome outcome;
    std::vector<ByteRange> ranges;
  };
  using enum RangeOutcome;
  const Row table[] = {
      {"bytes=0-99", kSatisfiable, {{0, 100}}},
      {"Bytes=0-99", kSatisfiable, {{0, 100}}},
      {"bytes=0-0", kSatisfiable, {{0, 1}}},
      {"bytes=999-", kSatisfiable, {{999, 1000}}},
      {"bytes=500-", kSatisfiable, {{500, 1000}}},
      {"bytes=0-", kSatisfiable, {{0, 1000}}},
      {"bytes=-5", kSatisfiable, {{995, 1000}}},
      {"bytes=-5000", kSatisfiable, {{0, 1000}}},
      {"bytes=990-2000", kSatisfiable, {{990, 1000}}},
      {"bytes=0-99999999999999999999", kSatisfiable, {{0, 1000}}},
      {"bytes= 0-1 ,, 5-6", kSatisfiable, {{0, 2}, {5, 7}}},
      {"bytes=5-6,0-1", kSatisfiable, {{5, 7}, {0, 2}}},
      {"bytes=0-1,2000-", kSatisfiable, {{0, 2}}},
      {"bytes=0-5,3-9", kSatisfiable, {{0, 6}, {3, 10}}},
      {"bytes=1000-", kUnsatisfiable, {}},
      {"bytes=-0", kUnsatisfiable, {}},
      {"bytes=1000-1001,-0", kUnsatisfiable, {}},
      {"bytes=99999999999999999999-", kUnsatisfiable, {}},
      {"bytes=0-5,1-6,2-7", kWhole, {}},
      {"bytes=0-1,2-3,4-5,6-7,8-9", kWhole, {}},
      {"bytes=5-1", kWhole, {}},
      {"bytes=0-1,5-1", kWhole, {}},
      {"bytes=", kWhole, {}},
      {"bytes=-", kWhole, {}},
      {"bytes=a-b", kWhole, {}},
      {"bytes=1", kWhole, {}},
      {"bytes=1-2-3", kWhole, {}},
      {"bytes=--1", kWhole, {}},
      {"bytes=+1-2", kWhole, {}},
      {"bytes 0-1", kWhole, {}},
      {"bytes =0-1", kWhole, {}},
      {"items=0-1", kWhole, {}},
      {"0-1", kWhole, {}},
      {"", kWhole, {}},
  };
  for (const Row& row : table) {
    CAPTURE(row.value);
    const Resolved result = resolve(row.value, 1000);
    CHECK(result.outcome == row.outcome);
    if (row.outcome == kSatisfiable) CHECK(result.ranges == row.ranges);
  }
  CHECK(resolve("bytes=0-", 0).outcome == kUnsatisfiable);
  CHECK(resolve("bytes=-1", 0).outcome == kUnsatisfiable);
}

TEST_CASE("a Content-Range is read, and refused where it contradicts itself", "[rfc9110][14.4]") {
  const auto whole = parse_content_range("bytes 0-99/1234");
  REQUIRE(whole);
  CHECK(whole->range == ByteRange{0, 100});
  CHECK(whole->length == 1234U);
  CHECK(parse_content_range("bytes 0-99/*")->length == std::nullopt);
  CHECK(parse_content_range("bytes */1234")->range == std::nullopt);
  CHECK(parse_content_range("BYTES 0-0/1")->range == ByteRange{0, 1});
  for (const char* bad : {"", "bytes", "bytes 0-99", "bytes 99-0/1234", "bytes 0-1234/1234",
                          "bytes */*", "bytes=0-99/1234", "items 0-99/1234", "bytes 0-/1234",
                          "bytes -99/1234", "bytes 0-99/", "bytes 0-99/-1", "bytes 0-99/1234, 1",
                          "bytes  0-99/1234", "bytes 0-9223372036854775808/*"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_content_range(bad));
  }
  CHECK(content_range({0, 100}, 1234) == "bytes 0-99/1234");
  CHECK(content_range({5, 10}, std::nullopt) == "bytes 5-9/*");
  CHECK(unsatisfied_content_range(1234) == "bytes */1234");
}

TEST_CASE("a range says how much of an unknown length it needs", "[rfc9110][14.2]") {
  const auto needed = [](std::string_view value) { return needed_for_range(value, {}); };
  CHECK(needed("bytes=5-9") == RangeNeed{.begin = 5, .end = 10});
  CHECK(needed("bytes=0-0") == RangeNeed{.begin = 0, .end = 1});
  CHECK(needed("bytes=2-3, 7-8") == RangeNeed{.begin = 2, .end = 9});
  CHECK(needed("bytes=5-") == RangeNeed{.begin = 5, .end = 0, .to_end = true});
  CHECK(needed("bytes=1-2,5-") == RangeNeed{.begin = 1, .end = 3, .to_end = true});
  CHECK(needed("bytes=-5") == RangeNeed{.begin = 0, .end = 0, .to_end = true});
  CHECK(needed("bytes=3-4,-5") == RangeNeed{.begin = 0, .end = 5, .to_end = true});
  CHECK(needed("bytes=-0") == RangeNeed{.begin = 0, .end = 0, .to_end = true});
  // As good as without a last position.
  CHECK(needed("bytes=5-99999999999999999999")->to_end);
  // Only the length shows that nothing satisfies it.
  CHECK(needed("bytes=99999999999999999999-")->to_end);
}

TEST_CASE("what is answered by the whole needs nothing", "[rfc9110][14.2]") {
  for (const char* value : {"bytes=0-", "bytes=0-99999999999999999999", "bytes=5-6,0-1",
                            "bytes=0-5,3-8", "bytes=", "bytes=4-2", "bytes=x-", "lines=0-1",
                            "bytes=1-1,2-2,3-3,4-4,5-5,6-6,7-7,8-8,9-9,10-10,"
                            "11-11,12-12,13-13,14-14,15-15,16-16,17-17"}) {
    INFO(value);
    CHECK_FALSE(needed_for_range(value, {}).has_value());
  }
}

TEST_CASE("once what it needs is there, a range is the same of every length", "[rfc9110][14.2]") {
  for (const char* value : {"bytes=5-9", "bytes=2-3,7-8", "bytes=0-0,4-9"}) {
    INFO(value);
    const auto needed = needed_for_range(value, {});
    REQUIRE(needed);
    std::vector<ByteRange> early;
    std::vector<ByteRange> late;
    CHECK(resolve_range(value, needed->end, {}, early) == RangeOutcome::kSatisfiable);
    CHECK(resolve_range(value, 1000, {}, late) == RangeOutcome::kSatisfiable);
    CHECK(early == late);
  }
}

TEST_CASE("a 206 must hold what was asked for", "[rfc9110][15.3.7]") {
  const auto answers = [](std::string_view content, std::string_view range) {
    return answers_range(*parse_content_range(content), range);
  };
  CHECK(answers("bytes 0-99/1000", "bytes=0-99"));
  CHECK(answers("bytes 0-49/1000", "bytes=0-99"));
  CHECK(answers("bytes 990-999/1000", "bytes=-10"));
  CHECK(answers("bytes 500-999/1000", "bytes=500-"));
  CHECK_FALSE(answers("bytes 0-100/1000", "bytes=0-99"));
  CHECK_FALSE(answers("bytes 100-199/1000", "bytes=0-99"));
  CHECK_FALSE(answers("bytes 0-99/*", "bytes=0-99"));
  CHECK_FALSE(answers("bytes */1000", "bytes=0-99"));
  CHECK_FALSE(answers("bytes 0-99/1000", "items=0-99"));
}

TEST_CASE("parts are joined only with one strong validator and without a gap",
          "[rfc9110][15.3.7.3]") {
  const Validators strong{.etag = "\"a\""};
  const Validators other{.etag = "\"b\""};
  const Validators weak{.etag = "W/\"a\""};
  const Validators dated{.etag = "", .last_modified = 1, .date = 100};
  CHECK(may_combine({0, 10}, strong, 100, {10, 20}, strong, 100));
  CHECK(may_combine({10, 20}, strong, 100, {0, 10}, strong, 100));
  CHECK(may_combine({0, 15}, strong, 100, {10, 20}, strong, 100));
  CHECK_FALSE(may_combine({0, 10}, strong, 100, {11, 20}, strong, 100));
  CHECK_FALSE(may_combine({0, 10}, strong, 100, {10, 20}, strong, 101));
  CHECK_FALSE(may_combine({0, 10}, strong, 100, {10, 20}, other, 100));
  CHECK_FALSE(may_combine({0, 10}, weak, 100, {10, 20}, weak, 100));
  CHECK_FALSE(may_combine({0, 10}, dated, 100, {10, 20}, dated, 100));
}

TEST_CASE("several ranges are written as parts of the announced length", "[rfc9110][14.6]") {
  const std::string body = "0123456789";
  const std::vector<ByteRange> ranges = {{0, 2}, {8, 10}};
  std::string text;
  for (const ByteRange& range : ranges) {
    text += part_head("B", "text/plain", range, body.size());
    text += body.substr(range.begin, range.size());
  }
  text += multipart_end("B");
  CHECK(
      text ==
      "\r\n--B\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01"
      "\r\n--B\r\nContent-Type: text/plain\r\nContent-Range: bytes 8-9/10\r\n\r\n89\r\n--B--\r\n");
  CHECK(multipart_bytes("B", "text/plain", ranges, body.size()) == text.size());
  CHECK(part_head("B", "", {0, 1}, 2) == "\r\n--B\r\nContent-Range: bytes 0-0/2\r\n\r\n");
  CHECK(part_head("B", "", {0, 1}, std::nullopt) ==
        "\r\n--B\r\nContent-Range: bytes 0-0/*\r\n\r\n");
}

TEST_CASE("Range counts in a GET, and once", "[rfc9110][14.2]") {
  const auto range = [](const std::string& line, const std::string& fields) {
    const std::string text = line + " / HTTP/1.1\r\n" + fields + "\r\n";
    return std::string(range_value(request_head(text)));
  };
  CHECK(range("GET", "Range: bytes=0-1\r\n") == "bytes=0-1");
  CHECK(range("GET", "A: b\r\n").empty());
  CHECK(range("HEAD", "Range: bytes=0-1\r\n").empty());
  CHECK(range("GET", "Range: bytes=0-1\r\nRange: bytes=0-1\r\n").empty());
}

TEST_CASE("answers with ranges keep the stored fields but those of the length",
          "[rfc9110][15.3.7]") {
  const std::string text =
      "HTTP/1.1 200 OK\r\nContent-Type: t\r\nETag: \"a\"\r\nDate: d\r\nX: y\r\n"
      "Content-Length: 10\r\n\r\n";
  const ResponseHead stored = response_head(text);
  std::string out;
  build_partial_head(stored, {2, 5}, 10, out);
  CHECK(out ==
        "HTTP/1.1 206 Partial Content\r\nContent-Type: t\r\nETag: \"a\"\r\nDate: d\r\nX: y\r\n"
        "Content-Range: bytes 2-4/10\r\nContent-Length: 3\r\n");
  const std::string partial_text = out + "\r\n";
  build_multipart_head(stored, "B", 123, out);
  CHECK(out ==
        "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nDate: d\r\nX: y\r\n"
        "Content-Type: multipart/byteranges; boundary=B\r\nContent-Length: 123\r\n");
  build_unsatisfiable_head(stored, 10, out);
  CHECK(out ==
        "HTTP/1.1 416 Range Not Satisfiable\r\nETag: \"a\"\r\nDate: d\r\n"
        "Content-Range: bytes */10\r\nContent-Length: 0\r\n");
  build_whole_head(response_head(partial_text), 10, out);
  CHECK(out + "\r\n" == text);
}

}  // namespace encore::http
