#include "proxy/http/reuse.h"

#include "tests/catch.h"
#include "tests/http/heads.h"
#include "tests/rfc9111/clocks.h"

namespace encore::http {
namespace {

using namespace std::chrono_literals;

std::string ok_response_text(const std::string& lines) {
  std::string text = "HTTP/1.1 200 OK\n" + lines;
  std::string out;
  for (const char c : text) out += c == '\n' ? std::string("\r\n") : std::string(1, c);
  return out + "\r\n\r\n";
}

// The meta of a 200 with these fields that arrived at kArrived.
StoredMeta stored_at_arrival(const std::string& lines) {
  const std::string text = ok_response_text(lines);
  const ResponseHead head = response_head(text);
  const ResponseDirectives directives = parse_response_directives(head.fields);
  return make_stored_meta(head, directives, freshness_lifetime(head, directives, kNow, {}),
                          exchange());
}

ReuseDecision decide(const std::string& response, const std::string& request, Nanoseconds later,
                     const ReuseOptions& options = {}) {
  return decide_reuse(stored_at_arrival(response),
                      parse_request_directives(FieldText(request).fields()), kArrived + later,
                      options);
}

const std::string kMinute = "Cache-Control: max-age=60";

}  // namespace

TEST_CASE("a response is fresh until its age reaches its lifetime", "[rfc9111][4.2]") {
  const StoredMeta meta = stored_at_arrival(kMinute + "\nAge: 20");
  CHECK(is_fresh(meta, kArrived));
  CHECK(is_fresh(meta, kArrived + 40s - 1ns));
  CHECK_FALSE(is_fresh(meta, kArrived + 40s));
  CHECK(current_age(meta, kArrived + 1500ms) == 21);
  CHECK(remaining_ttl(meta, kArrived + 1500ms) == 39);
  CHECK(remaining_ttl(meta, kArrived + 45s) == -5);
  CHECK_FALSE(is_fresh(stored_at_arrival(kMinute + "\nCache-Control: no-cache"), kArrived));
  CHECK(current_age(stored_at_arrival("Age: 99999999999"), kArrived + 1h) == kDeltaMax);
}

TEST_CASE("what is in doubt is validated by what is strong", "[rfc9111][4.3.1]") {
  StoredMeta meta = stored_at_arrival(kMinute);
  const auto proof = [&](MonotonicTime stale_from, const std::string& request,
                         const ReuseOptions& options = {}) {
    return wanted_proof(meta, stale_from, parse_request_directives(FieldText(request).fields()),
                        options);
  };
  CHECK(proof(meta.fresh_until, "A: b") == ValidatorStrength::kUsual);
  CHECK(proof(meta.fresh_until + 1h, "A: b") == ValidatorStrength::kUsual);
  CHECK(proof(meta.fresh_until - 1s, "A: b") == ValidatorStrength::kUsual);  // a disk's seconds
  CHECK(proof(meta.fresh_until - 2s, "A: b") == ValidatorStrength::kStrong);
  CHECK(proof(meta.fresh_until, "Cache-Control: max-age=0") == ValidatorStrength::kUsual);
  CHECK(proof(meta.fresh_until, "Cache-Control: no-cache") == ValidatorStrength::kStrong);
  CHECK(proof(meta.fresh_until, "Cache-Control: no-cache", {.ignore_client_reload = true}) ==
        ValidatorStrength::kUsual);
  meta.flags |= StoredMeta::kInvalidated;
  CHECK(proof(meta.fresh_until, "A: b") == ValidatorStrength::kStrong);
}

TEST_CASE("a soft purge makes stale at once, and lets the stale windows begin", "[rfc9111][4.4]") {
  StoredMeta meta = stored_at_arrival("Cache-Control: max-age=60, stale-while-revalidate=10");
  mark_stale(meta, kArrived + 5s);
  CHECK_FALSE(is_fresh(meta, kArrived + 5s));
  CHECK(remaining_ttl(meta, kArrived + 7s) == -2);
  CHECK(decide_reuse(meta, {}, kArrived + 14s, {}).action == Reuse::kStaleWhileRevalidate);
  CHECK(decide_reuse(meta, {}, kArrived + 15s, {}).action == Reuse::kMustValidate);
  meta.flags |= StoredMeta::kInvalidated;
  CHECK(decide_reuse(meta, {}, kArrived + 14s, {}).action == Reuse::kMustValidate);
  CHECK_FALSE(may_serve_stale(meta, {}, kArrived + 6s, OriginFailure::kUnreachable, {}));
}

TEST_CASE("a request's directives narrow and widen what it accepts", "[rfc9111][5.2.1]") {
  struct Row {
    std::string response;
    std::string request;
    Nanoseconds later;
    Reuse action;
    ForwardCause cause;
  };
  using R = Reuse;
  using C = ForwardCause;
  const std::string strict = "Cache-Control: max-age=60, must-revalidate";
  const Row table[] = {
      {kMinute, "A: b", 59s, R::kFresh, C::kNone},
      {kMinute, "A: b", 60s, R::kMustValidate, C::kStale},
      {kMinute, "Cache-Control: max-age=30", 30s, R::kFresh, C::kNone},
      {kMinute, "Cache-Control: max-age=30", 31s, R::kMustValidate, C::kRequest},
      {kMinute, "Cache-Control: max-age=0", 1ms, R::kMustValidate, C::kRequest},
      {kMinute, "Cache-Control: max-age=90", 61s, R::kMustValidate, C::kStale},
      {kMinute, "Cache-Control: min-fresh=30", 29s, R::kFresh, C::kNone},
      {kMinute, "Cache-Control: min-fresh=30", 31s, R::kMustValidate, C::kRequest},
      {kMinute, "Cache-Control: max-stale", 1000h, R::kStaleAllowed, C::kNone},
      {kMinute, "Cache-Control: max-stale=10", 69s, R::kStaleAllowed, C::kNone},
      {kMinute, "Cache-Control: max-stale=10", 71s, R::kMustValidate, C::kStale},
      {kMinute, "Cache-Control: max-stale=10", 59s, R::kFresh, C::kNone},
      {kMinute, "Cache-Control: max-age=0, max-stale", 5s, R::kFresh, C::kNone},
      {strict, "Cache-Control: max-stale", 61s, R::kMustValidate, C::kStale},
      {"Cache-Control: max-age=60, proxy-revalidate", "Cache-Control: max-stale", 61s,
       R::kMustValidate, C::kStale},
      {"Cache-Control: s-maxage=60", "Cache-Control: max-stale", 61s, R::kMustValidate, C::kStale},
      {"Cache-Control: max-age=60, no-cache", "Cache-Control: max-stale", 1s, R::kMustValidate,
       C::kStale},
      {kMinute, "Cache-Control: no-cache", 1s, R::kMustValidate, C::kRequest},
      {kMinute, "Pragma: no-cache", 1s, R::kMustValidate, C::kRequest},
      {kMinute, "Cache-Control: no-store", 1s, R::kFresh, C::kNone},
      {kMinute, "Cache-Control: only-if-cached", 1s, R::kFresh, C::kNone},
      {kMinute, "Cache-Control: only-if-cached", 61s, R::kGatewayTimeout, C::kNone},
      {kMinute, "Cache-Control: only-if-cached, no-cache", 1s, R::kGatewayTimeout, C::kNone},
      {kMinute, "Cache-Control: only-if-cached, max-stale", 61s, R::kStaleAllowed, C::kNone},
  };
  for (const Row& row : table) {
    CAPTURE(row.response, row.request, row.later.count());
    const ReuseDecision decision = decide(row.response, row.request, row.later);
    CHECK(decision.action == row.action);
    CHECK(decision.cause == row.cause);
  }
}

TEST_CASE("clients' reloads are ignored where that is configured", "[rfc9111][5.2.1]") {
  const ReuseOptions ignore{.ignore_client_reload = true};
  for (const char* request : {"Cache-Control: no-cache", "Pragma: no-cache",
                              "Cache-Control: max-age=0", "Cache-Control: min-fresh=100"}) {
    CAPTURE(request);
    CHECK(decide(kMinute, request, 1s, ignore).action == Reuse::kFresh);
    CHECK(decide(kMinute, request, 61s, ignore).action == Reuse::kMustValidate);
  }
}

TEST_CASE("an immutable response is not validated on a reload while it is fresh", "[rfc8246][2]") {
  const std::string immutable = "Cache-Control: max-age=60, immutable";
  CHECK(decide(immutable, "Cache-Control: max-age=0", 5s).action == Reuse::kFresh);
  CHECK(decide(immutable, "Cache-Control: max-age=0", 61s).action == Reuse::kMustValidate);
  CHECK(decide(immutable, "Cache-Control: no-cache", 5s).action == Reuse::kMustValidate);
}

TEST_CASE("what never was fresh is stale, also for a clock that is behind", "[rfc9111][4.2]") {
  // Each worker reads the clock once a turn, so that one may read an object that another stored
  // meanwhile.
  for (const char* never : {"ETag: \"v\"", "Cache-Control: max-age=0"}) {
    const StoredMeta meta = stored_at_arrival(never);
    for (const Nanoseconds behind : {Nanoseconds(0), Nanoseconds(1), Nanoseconds(5ms)}) {
      const MonotonicTime now = kArrived - behind;
      CHECK_FALSE(is_fresh(meta, now));
      CHECK(decide_reuse(meta, {}, now, {}).action == Reuse::kMustValidate);
      CHECK_FALSE(may_share(meta, {}, now, {}));
      CHECK_FALSE(may_serve_stale(meta, {}, now, OriginFailure::kUnreachable, {}));
    }
  }
}

TEST_CASE("who waited for another's response gets what the store alone would give him",
          "[rfc9111][4]") {
  const auto shares = [](const std::string& response, const std::string& request,
                         Nanoseconds later) {
    return may_share(stored_at_arrival(response),
                     parse_request_directives(FieldText(request).fields()), kArrived + later, {});
  };
  CHECK(shares(kMinute, "A: b", 0s));
  CHECK(shares(kMinute, "A: b", 59s));
  CHECK_FALSE(shares(kMinute, "A: b", 60s));
  CHECK_FALSE(shares(kMinute, "Cache-Control: max-stale", 61s));
  CHECK_FALSE(shares(kMinute, "Cache-Control: no-cache", 0s));
  CHECK_FALSE(shares(kMinute, "Cache-Control: max-age=1", 2s));
  CHECK_FALSE(shares(kMinute + ", stale-while-revalidate=90", "A: b", 61s));
  CHECK_FALSE(shares(kMinute + ", no-cache", "A: b", 0s));
  CHECK_FALSE(shares("ETag: \"v\"", "A: b", 0s));
  CHECK_FALSE(shares("Cache-Control: max-age=0", "A: b", 0s));
  CHECK(shares(kMinute + ", no-cache=\"set-cookie\"", "A: b", 0s));
}

TEST_CASE("stale-while-revalidate lasts exactly as long as it says", "[rfc5861][3]") {
  const std::string swr = "Cache-Control: max-age=60, stale-while-revalidate=10";
  CHECK(decide(swr, "A: b", 60s - 1ns).action == Reuse::kFresh);
  CHECK(decide(swr, "A: b", 60s).action == Reuse::kStaleWhileRevalidate);
  CHECK(decide(swr, "A: b", 70s - 1ns).action == Reuse::kStaleWhileRevalidate);
  CHECK(decide(swr, "A: b", 70s).action == Reuse::kMustValidate);
  CHECK(decide(swr, "Cache-Control: max-age=0", 61s).action == Reuse::kMustValidate);
  CHECK(decide(swr, "Cache-Control: max-age=90", 61s).action == Reuse::kStaleWhileRevalidate);
  CHECK(decide(swr, "Cache-Control: min-fresh=1", 61s).action == Reuse::kMustValidate);
  for (const char* more :
       {", must-revalidate", ", proxy-revalidate", ", s-maxage=60", ", no-cache"}) {
    CAPTURE(more);
    CHECK(decide(swr + more, "A: b", 61s).action == Reuse::kMustValidate);
  }
}

TEST_CASE("a stale response stands in for a failed origin where nothing forbids it",
          "[rfc5861][4][rfc9111][4.2.4]") {
  const auto serves = [](const std::string& response, const std::string& request, Nanoseconds later,
                         OriginFailure failure) {
    const StaleOptions options{.unreachable_seconds_max = 100, .error_status_seconds_max = 0};
    return may_serve_stale(stored_at_arrival(response),
                           parse_request_directives(FieldText(request).fields()), kArrived + later,
                           failure, options);
  };
  using enum OriginFailure;
  const std::string sie = "Cache-Control: max-age=60, stale-if-error=10";
  CHECK(serves(sie, "A: b", 69s, kErrorStatus));
  CHECK_FALSE(serves(sie, "A: b", 70s, kErrorStatus));
  CHECK(serves(sie, "A: b", 69s, kUnreachable));
  CHECK_FALSE(serves(sie, "A: b", 70s, kUnreachable));
  CHECK(serves(kMinute, "A: b", 159s, kUnreachable));
  CHECK_FALSE(serves(kMinute, "A: b", 160s, kUnreachable));
  CHECK_FALSE(serves(kMinute, "A: b", 61s, kErrorStatus));
  CHECK(serves(kMinute, "Cache-Control: stale-if-error=5", 64s, kErrorStatus));
  CHECK_FALSE(serves(kMinute, "Cache-Control: stale-if-error=5", 65s, kErrorStatus));
  CHECK(serves(kMinute, "Cache-Control: max-age=0", 30s, kErrorStatus));
  CHECK_FALSE(serves(sie, "Cache-Control: no-cache", 61s, kUnreachable));
  for (const char* more :
       {", must-revalidate", ", proxy-revalidate", ", s-maxage=60", ", no-cache"}) {
    CAPTURE(more);
    CHECK_FALSE(serves(sie + more, "A: b", 61s, kErrorStatus));
    CHECK_FALSE(serves(sie + more, "A: b", 61s, kUnreachable));
  }
  // A never-fresh response is not used without its origin, unless it allows that.
  for (const char* never : {"ETag: \"v\"", "Cache-Control: max-age=0", "Expires: 0"}) {
    CAPTURE(never);
    CHECK_FALSE(serves(never, "A: b", 1s, kUnreachable));
    CHECK_FALSE(serves(never, "Cache-Control: stale-if-error=9", 1s, kUnreachable));
  }
  CHECK(serves("Cache-Control: max-age=0, stale-if-error=9", "A: b", 1s, kErrorStatus));
  // If clients' reloads are ignored, so are these demands.
  const StoredMeta meta = stored_at_arrival(sie);
  const auto reload = parse_request_directives(FieldText("Pragma: no-cache").fields());
  CHECK_FALSE(may_serve_stale(meta, reload, kArrived + 61s, kUnreachable, {}));
  CHECK(
      may_serve_stale(meta, reload, kArrived + 61s, kUnreachable, {.ignore_client_reload = true}));
  for (unsigned status = 100; status < 600; ++status) {
    CHECK(is_error_status(status) == (status == 500 || (status >= 502 && status <= 504)));
  }
}

}  // namespace encore::http
