// Decides what is done with a response's head, as plans that follow from what is known alone: the
// request, the response, the stored object. Their executors decide nothing. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "proxy/http/cache_control.h"
#include "proxy/http/date.h"
#include "proxy/http/framing.h"
#include "proxy/http/message.h"
#include "proxy/http/reuse.h"
#include "proxy/http/stored_meta.h"
#include "proxy/http/storing.h"
#include "proxy/observe/outcome.h"
#include "proxy/transfer/inflight.h"

namespace encore::server {

// Result for a final response's head.
enum class ResponseStep : std::uint8_t {
  kPass,        // it is handed on, and stored where it may be
  kRefuse,      // it makes no sense: 502
  kConfirm,     // the stored response is as good as new
  kAskAnew,     // it confirms another than the stored one: asked again, without conditions
  kServeStale,  // an error, in whose place the stored response is served
  kComplete,    // the rest of a stored part, if it is that; else the whole is asked for
  kAskAsTold,   // a whole that is not worth it for a range: the client's own request goes instead
};

// The request to the origin.
struct Asked {
  const http::RequestHead& request;  // the client's
  const http::RequestDirectives& directives;
  bool whole = false;       // without the client's Range and conditions
  bool condition = false;   // with some condition, so that a 304 is an answer
  bool completion = false;  // for the rest of a stored part
};
// The stored response that was to be validated.
struct PendingValidation {
  http::StoredMeta meta;  // as of now
  std::string_view head;
};

struct ResponseFacts {
  Asked asked;
  const http::ResponseHead& head;
  const http::Framing& framing;
  bool surplus = false;                       // more bytes came with the head
  const PendingValidation* stored = nullptr;  // null: none
  // A whole that is larger is not fetched for a range, nor one that the cache refuses for its size.
  std::uint64_t range_fetch_bytes_max = 0;
  bool refused_for_size = false;  // matters where stands_for_range()
  http::UnixSeconds arrival = 0;
  MonotonicTime now{};
  const http::StaleOptions& stale;
};

struct HeadPlan {
  ResponseStep step = ResponseStep::kPass;
  std::string_view refusal = {};  // with kRefuse, for log and Cache-Status
  bool keep_alive = false;        // the connection, if the body ends as it should
  // With kPass:
  bool updates_stored = false;  // a HEAD's answer speaks of the stored response (RFC 9111 4.3.5)
  bool invalidates = false;     // the target, and what Location names (RFC 9111 4.4)
};
HeadPlan plan_head(const ResponseFacts& facts);

// True if a whole has come in place of a range that a client asked for: its size then matters.
bool stands_for_range(const ResponseFacts& facts);

// True if it is for the request alone that a response may not be stored: the object that is stored
// for others stays as it was.
bool is_of_the_request(http::StoreReason reason);

// Facts that decide about a response in the cache.
struct StoringFacts {
  Asked asked;
  const http::ResponseHead& head;
  const http::ResponseDirectives& directives;
  const http::StoreDecision& decision;
  bool has_key = false;       // else nothing of it is cached
  bool others_wait = false;   // or may: it stands in the table of transfers
  bool fits_range = false;    // a 206 whose part is the one that was asked for
  bool validates = false;     // a stored response was to be validated
  bool private_etag = false;  // its validator is for the one who asked alone
  const http::StoredMeta& meta;
  std::optional<std::uint64_t> length;
  bool has_large_head = false;  // larger than the store takes
  std::uint64_t object_bytes_max = 0;
  MonotonicTime now{};
};

enum class Admission : std::uint8_t {
  kNone,   // it is not asked for
  kAsk,    // the kernel decides
  kCount,  // the request counts, and nothing of the response is kept
};

struct StoringPlan {
  bool shareable = false;  // with those for whom it is fresh; else they ask for themselves
  // If it is stored, those who ask can validate it then. Else each asks for his own.
  bool is_for_validation = false;
  // Note about the key for the next requests; nothing: all stays as it was.
  std::optional<Inflight::Unshared> unshared = {};
  Admission admission = Admission::kNone;
  bool can_store = false;        // with kAsk: if it is admitted
  bool hinted = false;           // with kAsk: AdmitRequest::hinted, by the executor
  std::uint64_t size_bytes = 0;  // with kAsk: for admission
  bool drops_stored = false;     // the validated object is outdated, and this may not replace it
  Outcome outcome = Outcome::kUncacheable;  // if the kernel is not asked
};
StoringPlan plan_storing(const StoringFacts& facts);

}  // namespace encore::server
