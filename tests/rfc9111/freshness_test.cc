#include "proxy/http/freshness.h"

#include "proxy/http/stored_meta.h"
#include "proxy/http/targeted.h"
#include "tests/catch.h"
#include "tests/http/heads.h"
#include "tests/rfc9111/clocks.h"

namespace encore::http {
namespace {

using namespace std::chrono_literals;

Lifetime lifetime(const std::string& lines, unsigned status = 200,
                  const FreshnessOptions& options = {}) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " x\r\n";
  for (const char c : lines) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  text += lines.empty() ? "\r\n" : "\r\n\r\n";
  const ResponseHead head = response_head(text);
  const std::string target[] = {"cdn-cache-control"};
  return freshness_lifetime(head, effective_directives(head.fields, target), kNow, options);
}

}  // namespace

TEST_CASE("the freshness lifetime comes from the first source that is there", "[rfc9111][4.2.1]") {
  struct Row {
    std::string lines;
    LifetimeSource source;
    std::uint32_t seconds;
  };
  using S = LifetimeSource;
  const std::string date = "\nDate: " + date_text(kNow);
  const Row table[] = {
      {"Cache-Control: max-age=5, s-maxage=7" + date, S::kSMaxAge, 7},
      {"Cache-Control: s-maxage=0, max-age=7" + date, S::kSMaxAge, 0},
      {"Cache-Control: s-maxage=x, max-age=7" + date, S::kSMaxAge, 0},
      {"Cache-Control: max-age=5\nExpires: " + date_text(kNow + 100) + date, S::kMaxAge, 5},
      {"Expires: " + date_text(kNow + 100) + date, S::kExpires, 100},
      {"Expires: " + date_text(kNow - 100) + date, S::kExpires, 0},
      {"Expires: " + date_text(kNow) + date, S::kExpires, 0},
      {"Expires: 0" + date, S::kExpires, 0},
      {"Expires: soon" + date, S::kExpires, 0},
      {"Expires: " + date_text(kNow + 9) + "\nExpires: " + date_text(kNow + 5) + date, S::kExpires,
       5},
      {"Expires: " + date_text(kNow + 9) + "\nExpires: x" + date, S::kExpires, 0},
      {"Expires: " + date_text(253402300799) + date, S::kExpires, kDeltaMax},
      // Date counts, not our clock; ours stands in where there is none (RFC 9110 6.6.1).
      {"Expires: " + date_text(kNow + 100) + "\nDate: " + date_text(kNow + 40), S::kExpires, 60},
      {"Expires: " + date_text(kNow + 100) + "\nDate: x", S::kExpires, 100},
      {"Expires: " + date_text(kNow + 100), S::kExpires, 100},
      {"Expires: 0\nLast-Modified: " + date_text(kNow - 1000) + date, S::kExpires, 0},
      {"CDN-Cache-Control: max-age=9\nCache-Control: max-age=5\nExpires: 0" + date, S::kMaxAge, 9},
      {"CDN-Cache-Control: foo\nCache-Control: max-age=5\nExpires: 0" + date, S::kNone, 0},
  };
  for (const Row& row : table) {
    CAPTURE(row.lines);
    const Lifetime result = lifetime(row.lines);
    CHECK(result.source == row.source);
    CHECK(result.seconds == row.seconds);
  }
}

TEST_CASE(
    "a tenth of the time since Last-Modified is the heuristic, for the statuses that allow it",
    "[rfc9111][4.2.2]") {
  const std::string fields =
      "Last-Modified: " + date_text(kNow - 1000) + "\nDate: " + date_text(kNow);
  for (unsigned status = 200; status < 600; ++status) {
    const bool allowed = status == 200 || status == 203 || status == 204 || status == 206 ||
                         status == 300 || status == 301 || status == 308 || status == 404 ||
                         status == 405 || status == 410 || status == 414 || status == 501;
    CAPTURE(status);
    CHECK(lifetime(fields, status).seconds == (allowed ? 100U : 0U));
    CHECK(lifetime(fields + "\nCache-Control: public", status).seconds == 100U);
  }
  CHECK(lifetime(fields, 200, {.heuristic_fraction = 0.5}).seconds == 500);
  CHECK(lifetime(fields, 200, {.heuristic_seconds_max = 60}).seconds == 60);
  CHECK(lifetime("Last-Modified: " + date_text(kNow + 1000)).seconds == 0);
  CHECK(lifetime("Last-Modified: x").source == LifetimeSource::kNone);
  CHECK(lifetime("").source == LifetimeSource::kNone);
  CHECK(lifetime(fields + "\nCache-Control: max-age=0").seconds == 0);
}

TEST_CASE("Age is the first member, digits, or nothing", "[rfc9111][5.1]") {
  const std::pair<std::string_view, std::uint32_t> table[] = {
      {"Age: 7", 7},
      {"Age: 0", 0},
      {"Age: 007", 7},
      {"Age: 7, 9", 7},
      {"Age: 7\nAge: 9", 7},
      {"Age: 2147483648", kDeltaMax},
      {"Age: 99999999999999999999", kDeltaMax},
      {"Age: -7", 0},
      {"Age: 7.0", 0},
      {"Age: 7;a=b", 0},
      {"Age: a7", 0},
      {"Age: 7a", 0},
      {"Age: \"7\"", 0},
      {"Age: a, 7", 0},
      {"Age:", 0},
      {"X: 7", 0},
  };
  for (const auto& [lines, age] : table) {
    CAPTURE(lines);
    CHECK(age_value(FieldText(lines).fields()) == age);
  }
}

TEST_CASE("a response's age counts Age, the exchange and what Date tells", "[rfc9111][4.2.3]") {
  const auto initial = [](const std::string& lines, Nanoseconds delay) {
    return corrected_initial_age(FieldText(lines).fields(), exchange(delay));
  };
  const auto date = [](UnixSeconds offset) { return "\nDate: " + date_text(kNow + offset); };
  CHECK(initial("A: b", 0s) == 0s);
  CHECK(initial("A: b", 250ms) == 250ms);
  CHECK(initial("Age: 7", 250ms) == 7250ms);
  CHECK(initial("Age: 7" + date(0), 250ms) == 7250ms);
  CHECK(initial("Age: 7" + date(-5), 0s) == 7s);
  CHECK(initial("Age: 7" + date(-60), 0s) == 60s);
  CHECK(initial("A: b" + date(-60), 2s) == 60s);
  CHECK(initial("A: b" + date(+60), 2s) == 2s);
  // Written while the exchange ran: the second it names is no older than the delay.
  CHECK(initial("A: b" + date(-1), 600ms) == 600ms);
  CHECK(initial("A: b" + date(-1), 400ms) == 1s);
  CHECK(initial("A: b\nDate: Sat, 01 Jan 0000 00:00:00 GMT", 0s) ==
        std::chrono::seconds(kDeltaMax));
  CHECK(initial("Age: 99999999999", 0s) == std::chrono::seconds(kDeltaMax));
}

TEST_CASE("what an operator says of the lifetime comes before what the origin says",
          "[rfc9111][4.2.1]") {
  using S = LifetimeSource;
  const auto check = [](const FreshnessOptions& options, const std::string& lines, unsigned status,
                        S source, std::uint32_t seconds) {
    CAPTURE(lines, status);
    const Lifetime result = lifetime(lines, status, options);
    CHECK(result.source == source);
    CHECK(result.seconds == seconds);
  };
  FreshnessOptions fixed;
  fixed.rule.seconds = 50;
  fixed.rule.errors = {{404, 404, 0}, {400, 499, 7}};
  check(fixed, "", 200, S::kRule, 50);
  check(fixed, "Cache-Control: s-maxage=5", 206, S::kRule, 50);
  check(fixed, "Cache-Control: max-age=5", 404, S::kRule, 0);
  check(fixed, "", 403, S::kRule, 7);
  check(fixed, "", 500, S::kNone, 0);
  check(fixed, "Cache-Control: max-age=5", 500, S::kMaxAge, 5);
  FreshnessOptions bounded;
  bounded.rule.seconds_min = 10;
  bounded.rule.seconds_max = 20;
  check(bounded, "", 200, S::kRule, 10);
  check(bounded, "Cache-Control: max-age=5", 200, S::kRule, 10);
  check(bounded, "Cache-Control: max-age=15", 200, S::kMaxAge, 15);
  check(bounded, "Cache-Control: max-age=25", 200, S::kMaxAge, 20);
  check(bounded, "", 404, S::kNone, 0);
}

TEST_CASE("an operator's lifetime counts from when the response came", "[rfc9111][4.2.3]") {
  StoredMeta meta;
  const MonotonicTime came{1000s};
  meta.age_zero = came - 300s;
  set_lifetime(meta, {LifetimeSource::kRule, 60}, came);
  CHECK(meta.fresh_until == came + 60s);
  CHECK(meta.lifetime_seconds == 360);
  set_lifetime(meta, {LifetimeSource::kMaxAge, 60}, came);
  CHECK(meta.fresh_until == meta.age_zero + 60s);
}

}  // namespace encore::http
