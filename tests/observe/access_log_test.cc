#include "proxy/observe/access_log.h"

#include <algorithm>
#include <memory>
#include <string>

#include "proxy/observe/access_text.h"
#include "proxy/observe/field_limit.h"
#include "tests/catch.h"

namespace encore::server {
namespace {

// Bytes that a client may put into a record to make it look like another one.
const std::string kHostile = "a\"b\\c\nd\re\tf\x01g\x7fh\xffi j";

// A record with what it borrows.
struct Told {
  http::RequestHead head;
  OriginVisit visit;
  ClientTls tls;
  RequestRecord record;
  WallTime received;
  Nanoseconds duration{0};
  std::string_view client = "127.0.0.1";

  void set_field(std::string_view name, std::string_view value) {
    head.fields.add(name, value);
    record.head = &head;
  }
};

std::unique_ptr<Told> hostile_record() {
  auto told = std::make_unique<Told>();
  told->received = WallTime(std::chrono::seconds(784111777) + std::chrono::microseconds(250'001));
  told->duration = std::chrono::milliseconds(12);
  told->head.method_text = kHostile;
  told->head.target = kHostile;
  for (const std::string_view name : {"Referer", "User-Agent", "Host", "traceparent"}) {
    told->set_field(name, kHostile);
  }
  told->visit = {.address = kHostile, .server = kHostile};
  told->tls = {.version = kHostile,
               .cipher = kHostile,
               .server_name = kHostile,
               .subject = kHostile,
               .fingerprint = kHostile};
  RequestRecord& record = told->record;
  record.user = kHostile;
  record.status = 200;
  record.sent_bytes = 300;
  record.body_bytes = 200;
  record.outcome = Outcome::kHit;
  record.visit = &told->visit;
  record.tls = &told->tls;
  record.content_type = kHostile;
  record.listener_name = kHostile;
  record.detail = kHostile;
  record.request_id = kHostile;
  return told;
}

const Redaction kRedaction({"token"});

std::string line(std::string_view format, const Told& told) {
  const auto parsed = config::parse_log_format(format);
  REQUIRE(parsed.has_value());
  std::string out;
  append_access_record(out, *parsed,
                       {.record = told.record,
                        .received = told.received,
                        .duration = told.duration,
                        .client = told.client,
                        .url = told.record.head == nullptr ? "" : told.head.target},
                       kRedaction);
  return out;
}

TEST_CASE("no field is longer than a field may be, in any format", "[server][log]") {
  std::string huge;
  while (huge.size() < 60'000) huge += "\xe4\"x ";
  const auto told = hostile_record();
  told->head.target = huge;
  told->head.fields.clear();
  for (const std::string_view name : {"Referer", "User-Agent", "Host"}) {
    told->set_field(name, huge);
  }
  told->record.user = huge;
  const std::size_t whole = line("json", *hostile_record()).size();
  for (const std::string_view format :
       {"json", "squid", "combined", "%u %U %{Host}i \"%{Referer}i\""}) {
    CAPTURE(format);
    const std::string cut = line(format, *told);
    CHECK(cut.size() < whole + 5 * (kFieldBytesMax + kFieldCut.size()));
    CHECK(cut.find(kFieldCut) != std::string::npos);
  }
}

// Every directive there is, within quotation marks and without.
std::string all_directives() {
  std::string format =
      "%h %a %l %u %t %r %s %>s %b %B %O %I %D %T %{us}T %{ms}T %{s}T %m %U %q %H "
      "%v %p %X %% %{x}i %{y}o %{Referer}i %{Authorization}i";
  for (const auto& each : config::kLogFields) format += " %{" + std::string(each.name) + "}x";
  for (const auto& each : config::kLogForms) format += " %{" + std::string(each.name) + "}x";
  return format + " \"" + format + "\"";
}

std::string plain(std::string_view format) {
  Told told;
  told.received = WallTime(std::chrono::seconds(784111777) + std::chrono::microseconds(250'001));
  told.duration = std::chrono::milliseconds(12);
  told.head.method_text = "GET";
  told.head.target = "http://a/b";
  told.record.head = &told.head;
  told.record.status = 200;
  told.record.sent_bytes = 300;
  told.record.body_bytes = 200;
  told.record.outcome = Outcome::kHit;
  told.record.content_type = "text/html; charset=utf-8";
  return line(format, told);
}

TEST_CASE("a record is one line of printable ASCII whatever a client sends", "[server][log]") {
  for (const std::string& format :
       {std::string("json"), std::string("squid"), std::string("combined"), all_directives()}) {
    const std::string text = line(format, *hostile_record());
    CHECK(std::ranges::count(text, '\n') == 1);
    CHECK(text.back() == '\n');
    CHECK(std::ranges::all_of(text.substr(0, text.size() - 1),
                              [](char c) { return c >= 0x20 && c < 0x7f; }));
  }
}

TEST_CASE("JSON escapes quotes, backslashes, controls and octets above ASCII", "[server][log]") {
  const std::string text = line("json", *hostile_record());
  CHECK(text.find(R"("url":"a\"b\\c\u000ad\u000de\u0009f\u0001g\u007fh\u00ffi j")") !=
        std::string::npos);
}

TEST_CASE("what came inside a decrypted CONNECT says so", "[server][log]") {
  const auto told = hostile_record();
  CHECK_FALSE(line("json", *told).contains("intercepted"));
  told->record.intercepted = true;
  CHECK(line("json", *told).ends_with(",\"intercepted\":true}\n"));
}

TEST_CASE("squid's fields cannot be multiplied by spaces in a value", "[server][log]") {
  const std::string text = line("squid", *hostile_record());
  std::size_t fields = 0;
  bool in_field = false;
  for (const char c : text) {
    if (c != ' ' && c != '\n' && !in_field) ++fields;
    in_field = c != ' ' && c != '\n';
  }
  CHECK(fields == 11);
}

TEST_CASE("a quoted field of the combined format cannot be ended by its value", "[server][log]") {
  const std::string text = line("combined", *hostile_record());
  CHECK(std::ranges::count(text, '"') == 6);
}

TEST_CASE("a plain record looks as the format's readers expect", "[server][log]") {
  CHECK(plain("squid") ==
        "784111777.250     12 127.0.0.1 TCP_MEM_HIT/200 300 GET http://a/b - HIER_NONE/- "
        "text/html hit/-\n");
  CHECK(plain("combined") ==
        "127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] \"GET http://a/b HTTP/1.1\" 200 200 \"-\" "
        "\"-\" hit/-\n");
  CHECK(
      plain("json") ==
      R"({"time":"1994-11-06T08:49:37.250001Z","client":"127.0.0.1","method":"GET",)"
      R"("url":"http://a/b","version":"HTTP/1.1","status":200,"bytes":300,"body_bytes":200,)"
      R"("request_bytes":0,"duration_us":12000,"first_byte_us":12000,"outcome":"hit","content_type":"text/html; charset=utf-8"})"
      "\n");
}

TEST_CASE("a record names who has logged in where the format's readers look for it",
          "[server][log]") {
  Told told;
  told.client = "::1";
  RequestRecord& record = told.record;
  record.user = "ann";
  record.status = 403;
  record.outcome = Outcome::kDenied;
  CHECK(line("combined", told) ==
        "::1 - ann [01/Jan/1970:00:00:00 +0000] \"-\" 403 0 \"-\" \"-\" denied/-\n");
  CHECK(line("squid", told) ==
        "0.000      0 ::1 TCP_DENIED/403 0 - error:invalid-request ann HIER_NONE/- - denied/-\n");
  record.visit = &told.visit;
  told.visit.address = "127.0.0.1:80";
  CHECK(line("squid", told) ==
        "0.000      0 ::1 TCP_DENIED/403 0 - error:invalid-request ann HIER_DIRECT/127.0.0.1 - "
        "denied/-\n");
  told.visit.address = "[2001:db8::1]:443";
  record.through_parent = true;
  CHECK(line("squid", told).contains(" FIRSTUP_PARENT/2001:db8::1 "));
  CHECK(line("json", told).find(R"("client":"::1","user":"ann","method":"")") != std::string::npos);
  // A user whose name means no user, and one who would end the field.
  record.user = "-";
  CHECK(line("combined", told).starts_with("::1 - %2d ["));
  record.user = "a b\"";
  CHECK(line("combined", told).starts_with("::1 - a%20b%22 ["));
}

TEST_CASE("what could not be parsed is logged without a request", "[server][log]") {
  Told told;
  told.client = "::1";
  RequestRecord& record = told.record;
  record.status = 400;
  record.outcome = Outcome::kBadRequest;
  CHECK(line("combined", told) ==
        "::1 - - [01/Jan/1970:00:00:00 +0000] \"-\" 400 0 \"-\" \"-\" bad-request/-\n");
  CHECK(line("squid", told) ==
        "0.000      0 ::1 NONE_NONE/400 0 - error:invalid-request - HIER_NONE/- - bad-request/-\n");
}

TEST_CASE("JSON has every field that is documented, by its name and in its order",
          "[server][log]") {
  const auto told = hostile_record();
  told->head.fields.clear();
  for (const std::string_view name : {"Referer", "User-Agent", "Host"}) told->set_field(name, "x");
  told->set_field("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  told->visit.version = "HTTP/2";
  told->visit.connect = told->visit.answer = std::chrono::milliseconds(1);
  told->record.intercepted = true;
  const std::string text = line("json", *told);
  std::size_t at = 0;
  for (const auto& each : config::kLogFields) {
    const std::size_t found = text.find("\"" + std::string(each.name) + "\":", at);
    INFO(each.name);
    REQUIRE(found != std::string::npos);
    at = found;
  }
  CHECK(static_cast<std::size_t>(std::ranges::count(text, ':')) == config::kLogFields.size() + 2);
}

TEST_CASE("a line has something to say of every field", "[server][log]") {
  const auto check = [](std::string_view name) {
    INFO(name);
    const std::string format = "%{" + std::string(name) + "}x";
    CHECK(line(format, *hostile_record()).size() > 1);
    CHECK(line(format, Told()).size() > 1);
  };
  for (const auto& each : config::kLogFields) check(each.name);
  for (const auto& each : config::kLogForms) check(each.name);
}

TEST_CASE("times that there are not are left out, and a dash in a line", "[server][log]") {
  Told told;
  CHECK_FALSE(line("json", told).contains("connect_us"));
  CHECK(line("%{connect_us}x %{origin_us}x %{first_byte_us}x", told) == "- - 0\n");
  told.visit.connect = std::chrono::microseconds(7);
  told.visit.answer = Nanoseconds(0);
  told.record.visit = &told.visit;
  told.record.first_byte = std::chrono::microseconds(3);
  CHECK(line("%{connect_us}x %{origin_us}x %{first_byte_us}x", told) == "7 0 3\n");
  CHECK(line("json", told).contains(R"(,"connect_us":7,"origin_us":0)"));
}

TEST_CASE("fields of responses are read from their lines", "[server][log]") {
  Told told;
  told.record.response_fields =
      "HTTP/1.1 200 OK\r\nA: 1\r\na:2 \r\nB:\r\nno field\r\nLocation: /?token=x\r\n"
      "Set-Cookie: c\r\nLast: z";
  CHECK(line("%{A}o|%{b}o|%{C}o|%{location}o|%{set-cookie}o|%{last}o", told) ==
        "1,%202|-|-|/?token=***|***|z\n");
}

TEST_CASE("a trace context is one by its form", "[server][log]") {
  const std::string good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  CHECK(is_traceparent(good));
  CHECK(is_traceparent("01" + good.substr(2) + "-later"));
  for (const std::string& bad :
       {std::string(), good + "-later", good + "0", "ff" + good.substr(2), good.substr(1),
        "00_" + good.substr(3), "0G" + good.substr(2), "01" + good.substr(2) + "later",
        "01" + good.substr(2) + "-" + std::string(128, 'x')}) {
    CHECK_FALSE(is_traceparent(bad));
  }
}

}  // namespace
}  // namespace encore::server
