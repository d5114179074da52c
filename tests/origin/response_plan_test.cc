// Tables of what is done with a response's head: a row is a case, and says what must come of it.
#include "proxy/origin/response_plan.h"

#include <optional>
#include <string>
#include <vector>

#include "proxy/http/stored_head.h"
#include "proxy/http/targeted.h"
#include "tests/catch.h"
#include "tests/http/heads.h"

namespace encore::server {
namespace {

using enum ResponseStep;

constexpr MonotonicTime kNow{std::chrono::seconds(1000)};
constexpr http::UnixSeconds kArrival = 784111777;

// A stored response with the entity tag "v1", stale since a minute.
struct StaleResponse {
  explicit StaleResponse(const std::string& control) {
    const std::string text =
        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:48:37 GMT\r\n"
        "Cache-Control: " +
        control + "\r\nETag: \"v1\"\r\n\r\n";
    const http::ResponseHead response = http::response_head(text);
    const auto directives = http::effective_directives(response.fields, {});
    const MonotonicTime then = kNow - std::chrono::minutes(2);
    it.meta = http::make_stored_meta(response, directives, {.seconds = 60},
                                     {.response_wall = WallTime(std::chrono::seconds(kArrival)),
                                      .response_time = then,
                                      .request_time = then});
    http::build_stored_head(response, directives, 3, kArrival, {}, head, it.meta);
    it.head = head;
  }
  std::string head;
  PendingValidation it;
};

struct Row {
  const char* name;
  const char* request;
  const char* response;
  bool whole = true;
  bool condition = false;
  const char* stored = nullptr;  // its Cache-Control; null: nothing is to be validated
  bool completion = false;
  bool surplus = false;
  bool refused_for_size = false;
  ResponseStep step = kPass;
  const char* refusal = "";
  bool keep_alive = true;
  bool updates = false;
  bool invalidates = false;
};

const char* const kGetLines = "GET / HTTP/1.1\r\nHost: h\r\n";
const char* const kHead = "HEAD / HTTP/1.1\r\nHost: h\r\n";
const char* const kPut = "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n";
const char* const kRange = "GET / HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\n";
const char* const kOk = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n";
const char* const kSame = "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n";
const char* const kOther = "HTTP/1.1 304 Not Modified\r\nETag: \"v2\"\r\n";
const char* const kError = "HTTP/1.1 503 Away\r\nContent-Length: 0\r\n";
const char* const kPlain = "max-age=60";
const char* const kIfError = "max-age=60, stale-if-error=600";

const std::vector<Row> kRows = {
    {.name = "a plain answer", .request = kGetLines, .response = kOk},
    {.name = "framing that contradicts itself",
     .request = kGetLines,
     .response = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n",
     .step = kRefuse,
     .refusal = "framing",
     .keep_alive = false},
    {.name = "a 304 that nobody asked for",
     .request = kGetLines,
     .response = kSame,
     .step = kRefuse,
     .refusal = "unasked-304",
     .keep_alive = false},
    {.name = "a 304 to the client's own condition",
     .request = kGetLines,
     .response = kSame,
     .whole = false,
     .condition = true},
    {.name = "a 304 that confirms",
     .request = kGetLines,
     .response = kSame,
     .condition = true,
     .stored = kPlain,
     .step = kConfirm},
    {.name = "a 304 that confirms another",
     .request = kGetLines,
     .response = kOther,
     .condition = true,
     .stored = kPlain,
     .step = kAskAnew},
    {.name = "a new answer to a validation",
     .request = kGetLines,
     .response = kOk,
     .condition = true,
     .stored = kPlain},
    {.name = "an error to a validation, and the stored one may be served",
     .request = kGetLines,
     .response = kError,
     .condition = true,
     .stored = kIfError,
     .step = kServeStale},
    {.name = "an error to a validation, and it may not",
     .request = kGetLines,
     .response = kError,
     .condition = true,
     .stored = kPlain},
    {.name = "the client demands validation",
     .request = "GET / HTTP/1.1\r\nHost: h\r\nCache-Control: no-cache\r\n",
     .response = kError,
     .condition = true,
     .stored = kIfError},
    {.name = "a 404 is no failure of the origin",
     .request = kGetLines,
     .response = "HTTP/1.1 404 No\r\nContent-Length: 0\r\n",
     .condition = true,
     .stored = kIfError},
    {.name = "the answer to a HEAD updates what is stored",
     .request = kHead,
     .response = kOk,
     .condition = true,
     .stored = kPlain,
     .updates = true},
    {.name = "a HEAD with nothing stored", .request = kHead, .response = kOk},
    {.name = "the rest of a part",
     .request = kGetLines,
     .response = "HTTP/1.1 206 Part\r\nContent-Range: bytes 3-5/6\r\nContent-Length: 3\r\n",
     .completion = true,
     .step = kComplete},
    {.name = "nothing behind a part",
     .request = kGetLines,
     .response = "HTTP/1.1 416 No\r\nContent-Length: 0\r\n",
     .completion = true,
     .step = kComplete},
    {.name = "the whole in place of the rest",
     .request = kGetLines,
     .response = kOk,
     .completion = true},
    {.name = "a 206 that completes nothing",
     .request = kRange,
     .response = "HTTP/1.1 206 Part\r\nContent-Range: bytes 0-1/6\r\nContent-Length: 2\r\n",
     .whole = false},
    {.name = "a whole for a range, small enough", .request = kRange, .response = kOk},
    {.name = "a whole for a range, too large",
     .request = kRange,
     .response = "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n",
     .step = kAskAsTold},
    {.name = "a whole for a range, at the limit",
     .request = kRange,
     .response = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n"},
    {.name = "a whole for a range, of unknown length",
     .request = kRange,
     .response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"},
    {.name = "a whole for a range, until the connection ends",
     .request = kRange,
     .response = "HTTP/1.1 200 OK\r\n",
     .keep_alive = false},
    {.name = "of unknown length, and the range at what may be fetched for one",
     .request = "GET / HTTP/1.1\r\nHost: h\r\nRange: bytes=1000-1001\r\n",
     .response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nAccept-Ranges: bytes\r\n"},
    {.name = "of unknown length, and the range behind that",
     .request = "GET / HTTP/1.1\r\nHost: h\r\nRange: bytes=1001-1002\r\n",
     .response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nAccept-Ranges: bytes\r\n",
     .step = kAskAsTold},
    {.name = "of unknown length, and the origin serves no ranges",
     .request = "GET / HTTP/1.1\r\nHost: h\r\nRange: bytes=1001-1002\r\n",
     .response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nAccept-Ranges: none\r\n"},
    {.name = "of unknown length, and a suffix, which may be anywhere",
     .request = "GET / HTTP/1.1\r\nHost: h\r\nRange: bytes=-5\r\n",
     .response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nAccept-Ranges: bytes\r\n"},
    {.name = "a whole for a range, that the cache refuses",
     .request = kRange,
     .response = kOk,
     .refused_for_size = true,
     .step = kAskAsTold},
    {.name = "a validation is for more than a range",
     .request = kRange,
     .response = "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n",
     .condition = true,
     .stored = kPlain},
    {.name = "a range as the client asked",
     .request = kRange,
     .response = "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n",
     .whole = false},
    {.name = "an unsafe method that succeeds",
     .request = kPut,
     .response = "HTTP/1.1 204 Done\r\n",
     .whole = false,
     .invalidates = true},
    {.name = "an unsafe method that fails",
     .request = kPut,
     .response = "HTTP/1.1 409 No\r\nContent-Length: 0\r\n",
     .whole = false},
    {.name = "the origin closes",
     .request = kGetLines,
     .response = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n",
     .keep_alive = false},
    {.name = "a body until the end",
     .request = kGetLines,
     .response = "HTTP/1.1 200 OK\r\n",
     .keep_alive = false},
    {.name = "more than a head without a body",
     .request = kHead,
     .response = kOk,
     .surplus = true,
     .keep_alive = false},
    {.name = "more than an empty body",
     .request = kGetLines,
     .response = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
     .surplus = true,
     .keep_alive = false},
    {.name = "a body behind its head is no surplus",
     .request = kGetLines,
     .response = kOk,
     .surplus = true},
};

TEST_CASE("what a response's head comes to", "[origin][plan]") {
  for (const Row& row : kRows) {
    INFO(row.name);
    const std::string request_text = std::string(row.request) + "\r\n";
    const std::string response_text = std::string(row.response) + "\r\n";
    const http::RequestHead request = http::request_head(request_text);
    const http::ResponseHead head = http::response_head(response_text);
    const auto directives = http::parse_request_directives(request.fields);
    const http::Framing framing = http::response_framing(request.method, head);
    std::optional<StaleResponse> stored;
    if (row.stored != nullptr) stored.emplace(row.stored);
    const http::StaleOptions stale{.unreachable_seconds_max = 0, .error_status_seconds_max = 0};
    const HeadPlan plan = plan_head({.asked = {.request = request,
                                               .directives = directives,
                                               .whole = row.whole,
                                               .condition = row.condition,
                                               .completion = row.completion},
                                     .head = head,
                                     .framing = framing,
                                     .surplus = row.surplus,
                                     .stored = stored ? &stored->it : nullptr,
                                     .range_fetch_bytes_max = 1000,
                                     .refused_for_size = row.refused_for_size,
                                     .arrival = kArrival,
                                     .now = kNow,
                                     .stale = stale});
    CHECK(static_cast<int>(plan.step) == static_cast<int>(row.step));
    CHECK(plan.refusal == row.refusal);
    CHECK(plan.keep_alive == row.keep_alive);
    if (plan.step != kPass) continue;
    CHECK(plan.updates_stored == row.updates);
    CHECK(plan.invalidates == row.invalidates);
  }
}

using http::StoreReason;
using Unshared = Inflight::Unshared;

struct StoringRow {
  const char* name;
  const char* request = kGetLines;
  const char* response = "HTTP/1.1 200 OK\r\n";
  StoreReason reason = StoreReason::kOk;
  bool whole = true;
  bool has_key = true;
  bool others_wait = true;
  bool fits_range = false;
  bool validates = false;
  bool private_etag = false;
  bool fresh = true;
  bool etag = true;
  std::optional<int> modified_before = {};  // seconds before Date; nothing: no Last-Modified
  std::optional<std::uint64_t> length = 3;
  // The expected result.
  bool shareable = false;
  std::optional<Unshared> unshared = {};
  Admission admission = Admission::kNone;
  bool can_store = false;
  bool for_validation = false;
  std::uint64_t size = 0;
  bool drops = false;
  Outcome outcome = Outcome::kUncacheable;
};

const std::vector<StoringRow> kStoringRows = {
    {.name = "fresh and whole",
     .shareable = true,
     .unshared = Unshared::kNo,
     .admission = Admission::kAsk,
     .can_store = true,
     .size = 3},
    {.name = "of unknown length",
     .length = std::nullopt,
     .shareable = true,
     .unshared = Unshared::kNo,
     .admission = Admission::kAsk,
     .can_store = true,
     .size = 0},
    {.name = "empty is one byte, for 0 says unknown",
     .length = 0,
     .shareable = true,
     .unshared = Unshared::kNo,
     .admission = Admission::kAsk,
     .can_store = true,
     .size = 1},
    {.name = "to be validated at once is for nobody else",
     .fresh = false,
     .unshared = Unshared::kValidated,
     .admission = Admission::kAsk,
     .can_store = true,
     .for_validation = true,
     .size = 3},
    {.name = "by nothing to validate it with",
     .fresh = false,
     .etag = false,
     .unshared = Unshared::kAnswer,
     .admission = Admission::kAsk,
     .can_store = true,
     .size = 3},
    {.name = "nor by a date of the same second",
     .fresh = false,
     .etag = false,
     .modified_before = 0,
     .unshared = Unshared::kAnswer,
     .admission = Admission::kAsk,
     .can_store = true,
     .size = 3},
    {.name = "but by one of the second before",
     .fresh = false,
     .etag = false,
     .modified_before = 1,
     .unshared = Unshared::kValidated,
     .admission = Admission::kAsk,
     .can_store = true,
     .for_validation = true,
     .size = 3},
    {.name = "nor where it is not to be stored",
     .whole = false,
     .fresh = false,
     .unshared = Unshared::kAnswer,
     .admission = Admission::kAsk},
    {.name = "and where nobody waits, nothing is remembered",
     .others_wait = false,
     .fresh = false,
     .admission = Admission::kAsk,
     .can_store = true,
     .for_validation = true,
     .size = 3},
    {.name = "an entity tag for the one who asked alone",
     .private_etag = true,
     .unshared = Unshared::kAnswer,
     .admission = Admission::kAsk,
     .can_store = true,
     .size = 3},
    {.name = "not whole: it counts, and is not stored",
     .whole = false,
     .shareable = true,
     .unshared = Unshared::kNo,
     .admission = Admission::kAsk},
    {.name = "in place of a range that went as it is: nothing is learnt of the whole",
     .request = kRange,
     .whole = false,
     .shareable = true,
     .admission = Admission::kAsk},
    {.name = "a POST with freshness",
     .request = "POST / HTTP/1.1\r\nHost: h\r\n",
     .whole = false,
     .shareable = true,
     .unshared = Unshared::kNo,
     .admission = Admission::kAsk,
     .can_store = true,
     .size = 3},
    {.name = "a HEAD is never stored",
     .request = kHead,
     .shareable = true,
     .unshared = Unshared::kNo,
     .admission = Admission::kAsk},
    {.name = "a part as it was asked for",
     .request = kRange,
     .response = "HTTP/1.1 206 Part\r\n",
     .whole = false,
     .fits_range = true,
     .unshared = Unshared::kAnswer,
     .admission = Admission::kAsk,
     .can_store = true,
     .size = 3},
    {.name = "another part",
     .request = kRange,
     .response = "HTTP/1.1 206 Part\r\n",
     .whole = false,
     .unshared = Unshared::kAnswer,
     .admission = Admission::kAsk},
    {.name = "at the largest size",
     .length = 1000,
     .shareable = true,
     .unshared = Unshared::kNo,
     .admission = Admission::kAsk,
     .can_store = true,
     .size = 1000},
    {.name = "larger than any object",
     .length = 1001,
     .shareable = true,
     .unshared = Unshared::kNo,
     .size = 1001,
     .outcome = Outcome::kTooLarge},
    {.name = "no-store", .reason = StoreReason::kNoStore, .unshared = Unshared::kUncacheable},
    {.name = "no-store, and nobody waits", .reason = StoreReason::kNoStore, .others_wait = false},
    {.name = "an unsafe method",
     .request = kPut,
     .reason = StoreReason::kMethod,
     .others_wait = false,
     .outcome = Outcome::kMethod},
    {.name = "without a key", .has_key = false, .others_wait = false},
    {.name = "a request that says too much keeps others from nothing",
     .reason = StoreReason::kVaryTooLarge},
    {.name = "a 304 to the client's own condition counts",
     .response = "HTTP/1.1 304 Same\r\n",
     .reason = StoreReason::kStatus,
     .whole = false,
     .others_wait = false,
     .admission = Admission::kCount},
    {.name = "a 304 with no-store does not",
     .response = "HTTP/1.1 304 Same\r\nCache-Control: no-store\r\n",
     .reason = StoreReason::kStatus,
     .whole = false,
     .others_wait = false},
    {.name = "a private 304 does not",
     .response = "HTTP/1.1 304 Same\r\nCache-Control: private\r\n",
     .reason = StoreReason::kStatus,
     .whole = false,
     .others_wait = false},
    {.name = "nor one to a request with Authorization",
     .request = "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: x\r\n",
     .response = "HTTP/1.1 304 Same\r\n",
     .reason = StoreReason::kStatus,
     .whole = false,
     .others_wait = false},
    {.name = "what may not be stored any more outdates what is",
     .reason = StoreReason::kNoStore,
     .validates = true,
     .unshared = Unshared::kUncacheable,
     .drops = true},
    {.name = "but not for the request's sake",
     .reason = StoreReason::kAuthorization,
     .validates = true,
     .unshared = Unshared::kUncacheable},
    {.name = "nor by an error",
     .response = "HTTP/1.1 500 No\r\n",
     .reason = StoreReason::kNoStore,
     .validates = true,
     .unshared = Unshared::kUncacheable},
    {.name = "nor by what is wrong with the request",
     .response = "HTTP/1.1 429 Slow\r\n",
     .reason = StoreReason::kStatus,
     .validates = true},
    {.name = "which keeps others from waiting for one another no more",
     .response = "HTTP/1.1 400 Bad\r\n",
     .reason = StoreReason::kNoFreshness},
    {.name = "but by a page that is gone",
     .response = "HTTP/1.1 404 No\r\n",
     .reason = StoreReason::kNoFreshness,
     .validates = true,
     .unshared = Unshared::kUncacheable,
     .drops = true},
    {.name = "a HEAD outdates only where it forbids keeping",
     .request = kHead,
     .reason = StoreReason::kNoFreshness,
     .others_wait = false,
     .validates = true},
    {.name = "as this one does",
     .request = kHead,
     .reason = StoreReason::kPrivate,
     .others_wait = false,
     .validates = true,
     .drops = true},
    {.name = "and only by a 200",
     .request = kHead,
     .response = "HTTP/1.1 404 No\r\n",
     .reason = StoreReason::kPrivate,
     .others_wait = false,
     .validates = true},
    {.name = "nor by a redirection",
     .request = kHead,
     .response = "HTTP/1.1 302 Away\r\n",
     .reason = StoreReason::kNoStore,
     .others_wait = false,
     .validates = true},
};

TEST_CASE("what becomes of a response in the cache", "[origin][plan]") {
  for (const StoringRow& row : kStoringRows) {
    INFO(row.name);
    const std::string request_text = std::string(row.request) + "\r\n";
    const std::string response_text = std::string(row.response) + "\r\n";
    const http::RequestHead request = http::request_head(request_text);
    const http::ResponseHead head = http::response_head(response_text);
    const auto directives = http::parse_request_directives(request.fields);
    const auto of_response = http::effective_directives(head.fields, {});
    http::StoreDecision decision;
    decision.reason = row.reason;
    http::StoredMeta meta;
    meta.status = head.status;
    meta.etag_bytes = row.etag ? 3 : 0;
    meta.date = 1'790'000'000;
    if (row.modified_before) meta.last_modified = meta.date - *row.modified_before;
    meta.fresh_until = row.fresh ? kNow + std::chrono::seconds(1) : kNow;
    const StoringPlan plan =
        plan_storing({.asked = {.request = request, .directives = directives, .whole = row.whole},
                      .head = head,
                      .directives = of_response,
                      .decision = decision,
                      .has_key = row.has_key,
                      .others_wait = row.others_wait,
                      .fits_range = row.fits_range,
                      .validates = row.validates,
                      .private_etag = row.private_etag,
                      .meta = meta,
                      .length = row.length,
                      .object_bytes_max = 1000,
                      .now = kNow});
    CHECK(plan.shareable == row.shareable);
    CHECK((plan.unshared == row.unshared));
    CHECK((plan.admission == row.admission));
    CHECK(plan.can_store == row.can_store);
    CHECK(plan.is_for_validation == row.for_validation);
    CHECK(plan.size_bytes == row.size);
    CHECK(plan.drops_stored == row.drops);
    CHECK((plan.outcome == row.outcome));
  }
}

}  // namespace
}  // namespace encore::server
