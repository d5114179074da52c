// Requests the rest of a body whose beginning a client has: only if the response can be
// distinguished from that of another version, and accepted only if it is exactly the rest.
#include "proxy/http/continuation.h"

#include <string>

#include "tests/catch.h"
#include "tests/http/heads.h"

namespace encore::http {
namespace {

constexpr UnixSeconds kThen = 1'700'000'000;
constexpr std::string_view kDate = "Tue, 14 Nov 2023 22:13:20 GMT";
constexpr std::string_view kMinuteBefore = "Tue, 14 Nov 2023 22:12:20 GMT";
constexpr std::string_view kSecondBefore = "Tue, 14 Nov 2023 22:13:19 GMT";

std::string line(std::string_view name, std::string_view value) {
  return std::string(name) + ": " + std::string(value) + "\r\n";
}

std::optional<Continuation> asked(const std::string& lines, const MissingPart& missing,
                                  std::string_view status = "200 OK") {
  const std::string head =
      "HTTP/1.1 " + std::string(status) + "\r\n" + line("Date", kDate) + lines + "\r\n";
  return continue_response(response_head(head), missing, kThen);
}

const MissingPart kRest{.range = {40, 100}, .length = 100, .length_min = 60};
const MissingPart kOpen{.range = {40, 0}, .to_end = true, .length = {}, .length_min = 60};

TEST_CASE("the rest is asked for by a strong validator alone", "[rfc9110][13.1.5][continuation]") {
  const std::string tag = line("ETag", "\"a\"");
  CHECK(asked(tag, kRest)->validator() == "\"a\"");
  CHECK(asked(tag, kOpen)->validator() == "\"a\"");
  CHECK(asked(tag + line("Last-Modified", kMinuteBefore), kRest)->validator() == "\"a\"");
  CHECK(asked(line("Last-Modified", kMinuteBefore), kRest)->validator() == kMinuteBefore);
  CHECK(asked(line("ETag", "W/\"a\"") + line("Last-Modified", kMinuteBefore), kRest)->validator() ==
        kMinuteBefore);
  CHECK_FALSE(asked("", kRest));
  CHECK_FALSE(asked(line("ETag", "W/\"a\""), kRest));
  CHECK_FALSE(asked(line("ETag", "a"), kRest));
  CHECK_FALSE(asked(tag + line("ETag", "\"b\""), kRest));
  CHECK_FALSE(asked(line("Last-Modified", kSecondBefore), kRest));
  // Nothing but a date that may be of several lengths.
  CHECK_FALSE(asked(line("Last-Modified", kMinuteBefore), kOpen));
  CHECK_FALSE(asked(tag + line("Accept-Ranges", "none"), kRest));
  CHECK(asked(tag + line("Accept-Ranges", "bytes"), kRest));
  CHECK_FALSE(asked(tag, kRest, "206 Partial Content"));
}

TEST_CASE("the range is what is missing, and open where that is the end",
          "[rfc9110][14.2][continuation]") {
  const std::string tag = line("ETag", "\"a\"");
  CHECK(asked(tag, kRest)->range_value() == "bytes=40-");
  CHECK(asked(tag, kOpen)->range_value() == "bytes=40-");
  CHECK(asked(tag, {.range = {40, 99}, .length = 100})->range_value() == "bytes=40-98");
}

struct Answer {
  std::string status = "206 Partial Content";
  std::string range = "bytes 40-99/100";
  std::string lines = line("ETag", "\"a\"");
  std::optional<std::uint64_t> bytes = 60;

  bool continues(const Continuation& wanted) const {
    const std::string head =
        "HTTP/1.1 " + status + "\r\n" + line("Content-Range", range) + lines + "\r\n";
    return http::continues(wanted, response_head(head), bytes);
  }
};

TEST_CASE("an answer is the rest only with the same validator, place and length",
          "[rfc9110][15.3.7][continuation]") {
  const Continuation wanted = *asked(line("ETag", "\"a\""), kRest);
  CHECK(Answer{}.continues(wanted));
  CHECK_FALSE(Answer{.status = "200 OK"}.continues(wanted));
  CHECK_FALSE(Answer{.range = "bytes 41-99/100", .bytes = 59}.continues(wanted));
  CHECK_FALSE(Answer{.range = "bytes 39-99/100", .bytes = 61}.continues(wanted));
  CHECK_FALSE(Answer{.range = "bytes 40-98/100", .bytes = 59}.continues(wanted));
  CHECK_FALSE(Answer{.range = "bytes 40-99/101"}.continues(wanted));
  CHECK_FALSE(Answer{.range = "bytes 40-99/*"}.continues(wanted));
  CHECK_FALSE(Answer{.range = "bytes */100"}.continues(wanted));
  CHECK_FALSE(Answer{.bytes = 61}.continues(wanted));
  CHECK_FALSE(Answer{.bytes = std::nullopt}.continues(wanted));
  CHECK_FALSE(Answer{.lines = ""}.continues(wanted));
  CHECK_FALSE(Answer{.lines = line("ETag", "W/\"a\"")}.continues(wanted));
  CHECK_FALSE(Answer{.lines = line("ETag", "\"b\"")}.continues(wanted));
  CHECK_FALSE(Answer{.lines = line("ETag", "\"a\"") + line("ETag", "\"a\"")}.continues(wanted));
  CHECK_FALSE(
      Answer{.lines = line("ETag", "\"a\"") + line("Content-Encoding", "gzip")}.continues(wanted));
}

TEST_CASE("of an unknown length the rest is no shorter than what was seen",
          "[rfc9110][15.3.7][continuation]") {
  const Continuation wanted = *asked(line("ETag", "\"a\""), kOpen);
  CHECK(Answer{}.continues(wanted));
  CHECK(Answer{.range = "bytes 40-59/60", .bytes = 20}.continues(wanted));
  CHECK_FALSE(Answer{.range = "bytes 40-58/59", .bytes = 19}.continues(wanted));
}

TEST_CASE("by a date the answer has the same one, and the same coding",
          "[rfc9110][15.3.7][continuation]") {
  const std::string date = line("Last-Modified", kMinuteBefore);
  const std::string gzip = line("Content-Encoding", "gzip");
  const Continuation wanted = *asked(date + gzip, kRest);
  CHECK(Answer{.lines = date + gzip}.continues(wanted));
  CHECK_FALSE(Answer{.lines = date}.continues(wanted));
  CHECK_FALSE(Answer{.lines = gzip}.continues(wanted));
  CHECK_FALSE(Answer{.lines = gzip + line("Last-Modified", kSecondBefore)}.continues(wanted));
}

}  // namespace
}  // namespace encore::http
