#include "proxy/observe/access_log.h"

#include <algorithm>
#include <string>

#include "tests/catch.h"

namespace encore::server {
namespace {

// What a client may put into a record to make it look like another one.
const std::string kHostile = "a\"b\\c\nd\re\tf\x01g\x7fh\xffi j";

AccessRecord hostile_record() {
  AccessRecord record;
  record.received = WallTime(std::chrono::seconds(784111777) + std::chrono::microseconds(250'001));
  record.duration = std::chrono::milliseconds(12);
  record.client = "127.0.0.1";
  record.user = kHostile;
  record.method = kHostile;
  record.url = kHostile;
  record.version = "HTTP/1.1";
  record.status = 200;
  record.sent_bytes = 300;
  record.body_bytes = 200;
  record.outcome = Outcome::kHit;
  record.origin = kHostile;
  record.content_type = kHostile;
  record.referer = kHostile;
  record.user_agent = kHostile;
  record.host = kHostile;
  record.tls_version = kHostile;
  record.tls_cipher = kHostile;
  record.tls_server_name = kHostile;
  record.client_subject = kHostile;
  record.client_fingerprint = kHostile;
  return record;
}

std::string line(AccessFormat format, const AccessRecord& record) {
  std::string out;
  append_access_record(out, format, record);
  return out;
}

std::string plain(AccessFormat format) {
  AccessRecord record;
  record.received = WallTime(std::chrono::seconds(784111777) + std::chrono::microseconds(250'001));
  record.duration = std::chrono::milliseconds(12);
  record.client = "127.0.0.1";
  record.method = "GET";
  record.url = "http://a/b";
  record.version = "HTTP/1.1";
  record.status = 200;
  record.sent_bytes = 300;
  record.body_bytes = 200;
  record.outcome = Outcome::kHit;
  record.content_type = "text/html; charset=utf-8";
  return line(format, record);
}

TEST_CASE("a record is one line of printable ASCII whatever a client sends", "[server][log]") {
  for (const auto format : {AccessFormat::kJson, AccessFormat::kSquid, AccessFormat::kCombined}) {
    const std::string text = line(format, hostile_record());
    CHECK(std::ranges::count(text, '\n') == 1);
    CHECK(text.back() == '\n');
    CHECK(std::ranges::all_of(text.substr(0, text.size() - 1),
                              [](char c) { return c >= 0x20 && c < 0x7f; }));
  }
}

TEST_CASE("JSON escapes quotes, backslashes, controls and octets above ASCII", "[server][log]") {
  const std::string text = line(AccessFormat::kJson, hostile_record());
  CHECK(text.find(R"("url":"a\"b\\c\u000ad\u000de\u0009f\u0001g\u007fh\u00ffi j")") !=
        std::string::npos);
}

TEST_CASE("what came inside a decrypted CONNECT says so", "[server][log]") {
  AccessRecord record = hostile_record();
  CHECK_FALSE(line(AccessFormat::kJson, record).contains("intercepted"));
  record.intercepted = true;
  CHECK(line(AccessFormat::kJson, record).ends_with(",\"intercepted\":true}\n"));
}

TEST_CASE("squid's fields cannot be multiplied by spaces in a value", "[server][log]") {
  const std::string text = line(AccessFormat::kSquid, hostile_record());
  std::size_t fields = 0;
  bool in_field = false;
  for (const char c : text) {
    if (c != ' ' && c != '\n' && !in_field) ++fields;
    in_field = c != ' ' && c != '\n';
  }
  CHECK(fields == 10);
}

TEST_CASE("a quoted field of the combined format cannot be ended by its value", "[server][log]") {
  const std::string text = line(AccessFormat::kCombined, hostile_record());
  CHECK(std::ranges::count(text, '"') == 6);
}

TEST_CASE("a plain record looks as the format's readers expect", "[server][log]") {
  CHECK(plain(AccessFormat::kSquid) ==
        "784111777.250     12 127.0.0.1 TCP_MEM_HIT/200 300 GET http://a/b - HIER_NONE/- "
        "text/html\n");
  CHECK(plain(AccessFormat::kCombined) ==
        "127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] \"GET http://a/b HTTP/1.1\" 200 200 \"-\" "
        "\"-\"\n");
  CHECK(plain(AccessFormat::kJson) ==
        R"({"time":"1994-11-06T08:49:37.250001Z","client":"127.0.0.1","method":"GET",)"
        R"("url":"http://a/b","version":"HTTP/1.1","status":200,"bytes":300,"body_bytes":200,)"
        R"("duration_us":12000,"outcome":"hit","content_type":"text/html; charset=utf-8"})"
        "\n");
}

TEST_CASE("a record names who has logged in where the format's readers look for it",
          "[server][log]") {
  AccessRecord record;
  record.client = "::1";
  record.user = "ann";
  record.status = 403;
  record.outcome = Outcome::kDenied;
  CHECK(line(AccessFormat::kCombined, record) ==
        "::1 - ann [01/Jan/1970:00:00:00 +0000] \"-\" 403 0 \"-\" \"-\"\n");
  CHECK(line(AccessFormat::kSquid, record) ==
        "0.000      0 ::1 TCP_DENIED/403 0 - - ann HIER_NONE/- -\n");
  record.origin = "127.0.0.1";
  CHECK(line(AccessFormat::kSquid, record) ==
        "0.000      0 ::1 TCP_DENIED/403 0 - - ann HIER_DIRECT/127.0.0.1 -\n");
  CHECK(line(AccessFormat::kJson, record).find(R"("client":"::1","user":"ann","method":"")") !=
        std::string::npos);
  // Who is called as nobody is, and who would end the field.
  record.user = "-";
  CHECK(line(AccessFormat::kCombined, record).starts_with("::1 - %2d ["));
  record.user = "a b\"";
  CHECK(line(AccessFormat::kCombined, record).starts_with("::1 - a%20b%22 ["));
}

TEST_CASE("what could not be parsed is logged without a request", "[server][log]") {
  AccessRecord record;
  record.client = "::1";
  record.status = 400;
  record.outcome = Outcome::kBadRequest;
  CHECK(line(AccessFormat::kCombined, record) ==
        "::1 - - [01/Jan/1970:00:00:00 +0000] \"-\" 400 0 \"-\" \"-\"\n");
  CHECK(line(AccessFormat::kSquid, record) == "0.000      0 ::1 NONE/400 0 - - - HIER_NONE/- -\n");
}

}  // namespace
}  // namespace encore::server
