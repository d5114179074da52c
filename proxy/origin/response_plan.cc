#include "proxy/origin/response_plan.h"

#include <algorithm>

#include "proxy/http/conditional.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/invalidation.h"
#include "proxy/http/range.h"
#include "proxy/http/reuse.h"

namespace encore::server {
namespace {

bool confirms(const ResponseFacts& facts) {
  return http::not_modified_matches(http::stored_validators(facts.stored->meta, facts.stored->head),
                                    http::received_validators(facts.head, facts.arrival));
}

bool may_serve_stale(const ResponseFacts& facts) {
  return http::is_error_status(facts.head.status) &&
         http::may_serve_stale(facts.stored->meta, facts.asked.directives, facts.now,
                               http::OriginFailure::kErrorStatus, facts.stale);
}

// More bytes than announced belong to no response: the connection is not used again.
bool keeps_connection(const ResponseFacts& facts) {
  const bool bodiless =
      facts.framing.kind == http::BodyKind::kNone ||
      (facts.framing.kind == http::BodyKind::kLength && facts.framing.length == 0);
  return http::keep_alive(facts.head) && facts.framing.reusable && !(bodiless && facts.surplus);
}

// True if the range begins behind the part that may be fetched for one, in a whole of unknown size,
// and the origin says that it serves ranges.
bool begins_too_far_in(const ResponseFacts& facts) {
  if (!facts.head.fields.list_has(http::FieldId::kAcceptRanges, "bytes")) return false;
  const auto needed = http::needed_for_range(http::range_value(facts.asked.request), {});
  return needed && needed->begin > facts.range_fetch_bytes_max;
}

// The whole is larger than may be fetched for a range, or than the cache lets in.
bool is_too_much_for_range(const ResponseFacts& facts) {
  if (!stands_for_range(facts)) return false;
  if (facts.framing.kind != http::BodyKind::kLength) return begins_too_far_in(facts);
  return facts.framing.length > facts.range_fetch_bytes_max || facts.refused_for_size;
}

}  // namespace

bool stands_for_range(const ResponseFacts& facts) {
  return facts.asked.whole && facts.stored == nullptr && facts.head.status == 200 &&
         !http::range_value(facts.asked.request).empty();
}

bool is_of_the_request(http::StoreReason reason) {
  return reason == http::StoreReason::kRequestNoStore ||
         reason == http::StoreReason::kAuthorization || reason == http::StoreReason::kSetCookie;
}

HeadPlan plan_head(const ResponseFacts& facts) {
  HeadPlan plan;
  if (facts.framing.kind == http::BodyKind::kError) {
    plan.step = ResponseStep::kRefuse;
    plan.refusal = "framing";
    return plan;
  }
  const std::uint16_t status = facts.head.status;
  // A server that nobody asked whether something had changed says nothing by that it has not.
  if (status == 304 && !facts.asked.condition) {
    plan.step = ResponseStep::kRefuse;
    plan.refusal = "unasked-304";
    return plan;
  }
  plan.keep_alive = keeps_connection(facts);
  if (facts.stored != nullptr) {
    if (status == 304) {
      plan.step = confirms(facts) ? ResponseStep::kConfirm : ResponseStep::kAskAnew;
      return plan;
    }
    if (may_serve_stale(facts)) {
      plan.step = ResponseStep::kServeStale;
      return plan;
    }
    plan.updates_stored = facts.asked.request.method == http::Method::kHead;
  }
  // A 416 says that the present whole has nothing behind the stored part: it is another one.
  if (facts.asked.completion && (status == 206 || status == 416)) {
    plan.step = ResponseStep::kComplete;
  } else if (is_too_much_for_range(facts)) {
    plan.step = ResponseStep::kAskAsTold;
  }
  plan.invalidates = http::invalidates(facts.asked.request.method, status);
  return plan;
}

namespace {

// True if the new response ends the stored one although it may not replace it. Server errors do
// not, nor do errors of the request, which any client could cause. A HEAD does only if its 200
// forbids storing (RFC 9111 4.3.5).
bool is_outdated(const StoringFacts& facts) {
  const http::StoreReason reason = facts.decision.reason;
  if (!facts.validates || facts.decision.ok() || facts.head.status >= 500 ||
      http::blames_the_request(facts.head.status) || is_of_the_request(reason)) {
    return false;
  }
  if (facts.asked.request.method == http::Method::kGet) return true;
  return facts.head.status == 200 &&
         (reason == http::StoreReason::kPrivate || reason == http::StoreReason::kNoStore ||
          reason == http::StoreReason::kVaryStar);
}

// A 304 to the client's own condition tells of a response that could be stored: it counts as a
// request.
bool counts_unstored(const StoringFacts& facts) {
  return facts.head.status == 304 && facts.asked.request.method == http::Method::kGet &&
         facts.has_key && !facts.directives.no_store && !facts.directives.is_private &&
         !facts.asked.directives.no_store &&
         !facts.asked.request.fields.has(http::FieldId::kAuthorization);
}

// As AdmitRequest wants it, where 0 says that the size is not known: an empty body is one byte.
std::uint64_t size_for_admission(const StoringFacts& facts) {
  return facts.length ? std::max<std::uint64_t>(*facts.length, 1) : 0;
}

}  // namespace

StoringPlan plan_storing(const StoringFacts& facts) {
  const http::Method method = facts.asked.request.method;
  const bool part = facts.head.status == 206;
  StoringPlan plan;
  plan.drops_stored = is_outdated(facts);
  if (!facts.decision.ok() || !facts.has_key) {
    plan.outcome = http::is_safe(method) ? Outcome::kUncacheable : Outcome::kMethod;
    // An oversized or faulty request of one client does not stop others from collapsing.
    const bool is_of_all = facts.decision.reason != http::StoreReason::kVaryTooLarge &&
                           !http::blames_the_request(facts.head.status);
    if (facts.others_wait && is_of_all) {
      plan.unshared = Inflight::Unshared::kUncacheable;
    } else if (counts_unstored(facts)) {
      plan.admission = Admission::kCount;
    }
    return plan;
  }
  // A response that others would have to validate immediately is no answer to them, and its
  // validator must not be for the one who asked alone.
  plan.shareable = !part && !facts.private_etag && http::may_share(facts.meta, {}, facts.now, {});
  // A response in place of a forwarded range does not tell whether the whole is too large.
  const bool is_of_range = !facts.asked.whole && !http::range_value(facts.asked.request).empty();
  if (plan.shareable && !is_of_range) plan.unshared = Inflight::Unshared::kNo;
  plan.can_store =
      part ? facts.fits_range
           : (method == http::Method::kGet && facts.asked.whole) || method == http::Method::kPost;
  plan.is_for_validation = !plan.shareable && !part && !facts.private_etag && plan.can_store &&
                           (facts.meta.etag_bytes != 0 ||
                            http::is_strong_date(facts.meta.last_modified, facts.meta.date));
  if (!plan.shareable && facts.others_wait) {
    plan.unshared =
        plan.is_for_validation ? Inflight::Unshared::kValidated : Inflight::Unshared::kAnswer;
  }
  plan.size_bytes = plan.can_store ? size_for_admission(facts) : 0;
  if (facts.has_large_head || plan.size_bytes > facts.object_bytes_max) {
    plan.can_store = false;
    plan.outcome = Outcome::kTooLarge;
    return plan;
  }
  plan.admission = Admission::kAsk;
  return plan;
}

}  // namespace encore::server
