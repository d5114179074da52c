// Decides what is to be done with a request, from itself and what is known of its key. Pure,
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "proxy/http/cache_status.h"
#include "proxy/http/conditional.h"
#include "proxy/http/range.h"
#include "proxy/http/reuse.h"
#include "proxy/http/stored_meta.h"
#include "proxy/observe/outcome.h"
#include "proxy/request/request_context.h"
#include "proxy/store/object.h"

namespace encore::server {

// True if the request has passed this proxy before (RFC 9110 7.6.3).
bool is_forwarding_loop(const RequestContext& request);

// An answer that needs neither cache nor origin.
struct LocalResponse {
  int status = 0;
  Outcome outcome = Outcome::kBadRequest;
  std::string_view detail;              // for Cache-Status, and for people
  const RuleAnswer* content = nullptr;  // null: that alone
};
// Nothing: the request goes on. A 204 is the answer to an OPTIONS that goes no further (RFC 9110
// 7.6.2); all else are refusals.
std::optional<LocalResponse> answer_locally(const RequestContext& request);

// True if the request brings content that is still to come.
bool has_content(const RequestContext& request);

enum class RequestPath : std::uint8_t {
  kCache,         // stored objects are checked first
  kOrigin,        // not for the cache: it goes to the origin as it is
  kOnlyIfCached,  // not for the cache, and the client wants nothing else: 504
};
struct PathDecision {
  RequestPath path = RequestPath::kCache;
  http::Forwarded forwarded = http::Forwarded::kNo;  // with kOrigin
};
PathDecision choose_path(const RequestContext& request);

// Form of the request to the origin if no stored object will do.
enum class OriginRequestForm : std::uint8_t {
  kAsItIs,  // the request with its conditions and its range
  kWhole,   // the whole object, without them; the client's are answered here
};
struct MissFacts {
  bool uncacheable = false;  // lately the key's responses could not be stored
  bool admitted = false;     // by what the kernel would decide now
};
// True if the fact `admitted` makes a difference: else the kernel need not be asked.
bool depends_on_admission(const RequestContext& request, bool uncacheable);
OriginRequestForm origin_request_form(const RequestContext& request, const MissFacts& facts);

// Returns the reason in Cache-Status for a request that goes forward although something is stored.
http::Forwarded forwarded_for(http::ForwardCause cause);

// A stored part of a response, and what it can answer: a range that lies within it (RFC 9111 3.3).
struct StoredPart {
  const http::StoredMeta& meta;
  http::Validators validators;
  std::optional<http::ContentRange> content;  // nothing: of no use
};
enum class PartUse : std::uint8_t { kFresh, kStale, kAsk };
struct PartDecision {
  PartUse use = PartUse::kAsk;
  http::ByteRange range = {};                             // within the whole, unless kAsk
  http::Forwarded forwarded = http::Forwarded::kPartial;  // with kAsk
};
PartDecision decide_stored_part(const StoredPart& part, const RequestContext& request,
                                MonotonicTime now, WallTime wall);

// The same of an object that is such a part.
struct FoundPart {
  PartDecision decision;
  std::optional<http::ContentRange> content;  // the stored part's; there, unless kAsk
};
FoundPart judge_part(const store::Object& object, const http::StoredMeta& meta,
                     const RequestContext& request, MonotonicTime now, WallTime wall);

}  // namespace encore::server
