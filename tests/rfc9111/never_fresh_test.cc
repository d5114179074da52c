// A response that never was fresh, under every request and every setting: it is validated before
// each use, unless it permits more itself.
#include <string>
#include <vector>

#include "proxy/http/reuse.h"
#include "proxy/http/storing.h"
#include "tests/catch.h"
#include "tests/http/heads.h"
#include "tests/rfc9111/clocks.h"

namespace encore::http {
namespace {

using namespace std::chrono_literals;

StoredMeta stored(const std::string& lines, const FreshnessOptions& options = {},
                  Nanoseconds delay = Nanoseconds(0)) {
  std::string text = "HTTP/1.1 200 OK\r\n";
  for (const char c : lines) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  text += "\r\n\r\n";
  const ResponseHead head = response_head(text);
  const ResponseDirectives directives = parse_response_directives(head.fields);
  return make_stored_meta(head, directives, freshness_lifetime(head, directives, kNow, options),
                          exchange(delay));
}

std::string dated(const std::string& name, UnixSeconds time) {
  return "\n" + name + ": " + date_text(time);
}

const std::vector<std::string>& kinds() {
  static const std::string tag = "ETag: \"v\"";
  static const std::string date = dated("Date", kNow);
  static const std::string old = dated("Last-Modified", kNow - 100'000);
  static const std::vector<std::string> all = {
      tag,
      tag + date,
      "Date: " + date_text(kNow),
      "X: y",
      tag + "\nCache-Control: max-age=0",
      tag + "\nCache-Control: max-age=0" + old + date,
      tag + "\nCache-Control: public, max-age=0",
      tag + "\nCache-Control: max-age=x",
      tag + "\nCache-Control: max-age=60, max-age=0",
      tag + "\nCache-Control: s-maxage=0",
      tag + "\nCache-Control: s-maxage=0, max-age=60",
      tag + "\nCache-Control: max-age=0, immutable",
      tag + "\nCache-Control: public",
      tag + "\nCache-Control: must-revalidate",
      tag + "\nPragma: no-cache",
      tag + "\nPragma: foo, No-Cache" + old + date,
      tag + "\nPragma: no-cache" + old,
      tag + "\nExpires: 0" + date,
      tag + "\nExpires: -1" + old,
      tag + "\nExpires: soon" + date,
      tag + dated("Expires", kNow - 1) + date,
      tag + dated("Expires", kNow) + date,
      tag + dated("Expires", kNow - 1),
      tag + dated("Expires", 375'007'920) + date,  // the date that PHP sends
      tag + dated("Expires", kNow + 60) + "\nExpires: 0" + date,
      tag + dated("Last-Modified", kNow) + date,
      tag + dated("Last-Modified", kNow - 9) + date,
      tag + dated("Last-Modified", kNow + 1000) + date,
      "Last-Modified: " + date_text(kNow - 5),
      // A guess that was over before it came here.
      tag + "\nAge: 11" + dated("Last-Modified", kNow - 100) + date,
      tag + dated("Last-Modified", kNow - 200) + dated("Date", kNow - 100),
      tag + old + date + "\nAge: 99999999",
  };
  return all;
}

const std::vector<std::string>& requests() {
  static const std::vector<std::string> all = {
      "A: b",
      "Cache-Control: max-stale",
      "Cache-Control: max-stale=1000000",
      "Cache-Control: max-stale, max-age=1000000",
      "Cache-Control: stale-if-error=1000000",
      "Cache-Control: max-stale, stale-if-error=1000000",
      "Cache-Control: min-fresh=0",
      "Cache-Control: min-fresh=5",
      "Cache-Control: max-age=1000000",
      "Cache-Control: max-stale, only-if-cached",
  };
  return all;
}

const std::vector<StaleOptions>& settings() {
  static const std::vector<StaleOptions> all = {
      {.unreachable_seconds_max = 0, .error_status_seconds_max = 0},
      {.unreachable_seconds_max = kDeltaMax, .error_status_seconds_max = 0},
      {.unreachable_seconds_max = 0, .error_status_seconds_max = kDeltaMax},
      {.unreachable_seconds_max = kDeltaMax,
       .error_status_seconds_max = kDeltaMax,
       .ignore_client_reload = true},
  };
  return all;
}

struct Asked {
  RequestDirectives directives;
  ReuseOptions reuse;
  StaleOptions stale;
  MonotonicTime now;
};

// Every request at every moment under every setting.
template <typename F>
void for_each_case(F&& f) {
  for (const std::string& request : requests()) {
    for (const StaleOptions& stale : settings()) {
      for (const Nanoseconds later : {Nanoseconds(-5ms), Nanoseconds(0), Nanoseconds(1s)}) {
        CAPTURE(request, stale.unreachable_seconds_max, stale.error_status_seconds_max,
                later.count());
        f(Asked{.directives = parse_request_directives(FieldText(request).fields()),
                .reuse = {.ignore_client_reload = stale.ignore_client_reload},
                .stale = stale,
                .now = kArrived + later});
      }
    }
  }
}

void check_validated(const StoredMeta& meta) {
  for_each_case([&](const Asked& asked) {
    const Reuse action = decide_reuse(meta, asked.directives, asked.now, asked.reuse).action;
    CHECK(action ==
          (asked.directives.only_if_cached ? Reuse::kGatewayTimeout : Reuse::kMustValidate));
    CHECK_FALSE(is_fresh(meta, asked.now));
    CHECK_FALSE(may_share(meta, asked.directives, asked.now, asked.reuse));
    for (const OriginFailure failure : {OriginFailure::kErrorStatus, OriginFailure::kUnreachable}) {
      CHECK_FALSE(may_serve_stale(meta, asked.directives, asked.now, failure, asked.stale));
    }
  });
}

}  // namespace

TEST_CASE("a response that never was fresh is validated before every use", "[rfc9111][4.2.4]") {
  for (const std::string& kind : kinds()) {
    CAPTURE(kind);
    const StoredMeta meta = stored(kind);
    CHECK(meta.is(StoredMeta::kNeverFresh));
    check_validated(meta);
  }
}

TEST_CASE("a guess of freshness that is off, or shorter than the way, gives none",
          "[rfc9111][4.2.2][4.2.4]") {
  const std::string modified = "Last-Modified: " + date_text(kNow - 100);
  CHECK_FALSE(stored(modified).is(StoredMeta::kNeverFresh));
  CHECK_FALSE(stored(modified, {}, 9s).is(StoredMeta::kNeverFresh));
  check_validated(stored(modified, {}, 10s));
  check_validated(stored(modified, {.heuristic_fraction = 0}));
  check_validated(stored(modified, {.heuristic_seconds_max = 0}));
}

TEST_CASE("a rule that gives no freshness leaves a response as never fresh", "[rfc9111][4.2.4]") {
  check_validated(stored("ETag: \"v\"\nCache-Control: max-age=60", {.rule = {.seconds = 0}}));
  check_validated(stored("ETag: \"v\"\nCache-Control: max-age=60", {.rule = {.seconds_max = 0}}));
  check_validated(stored("ETag: \"v\"", {.rule = {.seconds_min = 0}}));
}

TEST_CASE("freshness by a rule makes a response of every kind one that once was fresh",
          "[rfc9111][4.2.4]") {
  for (const LifetimeRule& rule :
       {LifetimeRule{.seconds = 60}, LifetimeRule{.seconds_min = 100'000}}) {
    for (const std::string& kind : kinds()) {
      CAPTURE(kind);
      const StoredMeta meta = stored(kind, {.rule = rule});
      CHECK_FALSE(meta.is(StoredMeta::kNeverFresh));
      CHECK(is_fresh(meta, kArrived));
    }
  }
}

TEST_CASE("a lifetime that the origin states counts, though it was used up on the way",
          "[rfc9111][4.2.4][5.2.1.2]") {
  const RequestDirectives any =
      parse_request_directives(FieldText("Cache-Control: max-stale").fields());
  for (const std::string& lines :
       {std::string("Cache-Control: max-age=60\nAge: 70"),
        "Expires: " + date_text(kNow - 40) + dated("Date", kNow - 100)}) {
    CAPTURE(lines);
    const StoredMeta meta = stored(lines);
    CHECK_FALSE(meta.is(StoredMeta::kNeverFresh));
    CHECK_FALSE(is_fresh(meta, kArrived));
    CHECK(decide_reuse(meta, any, kArrived, {}).action == Reuse::kStaleAllowed);
    CHECK(may_serve_stale(meta, {}, kArrived, OriginFailure::kUnreachable, {}));
  }
}

TEST_CASE("what a response that never was fresh permits itself lasts as long as it says",
          "[rfc5861][3][4][rfc9111][4.2.4]") {
  for (const char* never : {"max-age=0, ", "", "public, "}) {
    const std::string control = std::string("ETag: \"v\"\nCache-Control: ") + never;
    CAPTURE(control);
    const StoredMeta while_asked = stored(control + "stale-while-revalidate=10");
    const StoredMeta if_failed = stored(control + "stale-if-error=10");
    for_each_case([&](const Asked& asked) {
      const auto action = [&](const StoredMeta& meta, Nanoseconds later) {
        return decide_reuse(meta, asked.directives, asked.now + later, asked.reuse).action;
      };
      const Reuse barred =
          asked.directives.only_if_cached ? Reuse::kGatewayTimeout : Reuse::kMustValidate;
      const bool demands = asked.directives.min_fresh && !asked.reuse.ignore_client_reload;
      CHECK(action(while_asked, 0s) == (demands ? barred : Reuse::kStaleWhileRevalidate));
      CHECK(action(while_asked, 11s) == barred);
      CHECK(action(if_failed, 0s) == barred);
      for (const OriginFailure failure :
           {OriginFailure::kErrorStatus, OriginFailure::kUnreachable}) {
        const auto serves = [&](const StoredMeta& meta, Nanoseconds later) {
          return may_serve_stale(meta, asked.directives, asked.now + later, failure, asked.stale);
        };
        CHECK(serves(if_failed, 0s));
        CHECK_FALSE(serves(if_failed, 11s));
        CHECK_FALSE(serves(while_asked, 0s));
      }
      CHECK_FALSE(may_share(while_asked, asked.directives, asked.now, asked.reuse));
    });
  }
  // A directive that forbids it prevails.
  for (const char* more :
       {", must-revalidate", ", proxy-revalidate", ", s-maxage=0", ", no-cache"}) {
    CAPTURE(more);
    check_validated(stored(std::string("ETag: \"v\"\nCache-Control: max-age=0, "
                                       "stale-while-revalidate=10, stale-if-error=10") +
                           more));
  }
}

}  // namespace encore::http
