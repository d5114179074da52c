#include "proxy/exchange/decide.h"

#include <vector>

#include "proxy/http/interim.h"
#include "proxy/http/stored_head.h"
#include "proxy/http/via.h"
#include "proxy/transfer/response.h"

namespace encore::server {
namespace {

using http::FieldId;

constexpr http::FieldSet kConditionalFields = {FieldId::kRange,       FieldId::kIfRange,
                                               FieldId::kIfNoneMatch, FieldId::kIfModifiedSince,
                                               FieldId::kIfMatch,     FieldId::kIfUnmodifiedSince};

bool is_get(const RequestContext& request) { return request.head.method == http::Method::kGet; }

}  // namespace

bool is_forwarding_loop(const RequestContext& request) {
  return http::via_has(request.head.fields, request.runtime->pseudonym);
}

std::optional<LocalResponse> answer_locally(const RequestContext& request) {
  const http::RequestHead& head = request.head;
  // First, so that a circle ends with its first round, whatever else would be said.
  if (is_forwarding_loop(request)) {
    return LocalResponse{508, Outcome::kLoop, "loop"};
  }
  // RFC 9110 10.1.1: the client learns that nobody meets what it expects.
  if (http::expectation(head) == http::Expectation::kUnknown) {
    return LocalResponse{417, Outcome::kBadRequest, "unknown-expectation"};
  }
  if (request.rule != nullptr && request.rule->answer()) {
    const RuleAnswer& by_rule = *request.rule->answer();
    LocalResponse answer{by_rule.status, Outcome::kDenied, request.rule->detail()};
    if (by_rule.is_refusal) return answer;
    answer.outcome = Outcome::kRule;
    answer.content = &by_rule;
    return answer;
  }
  if (request.rule != nullptr && request.rule->rewrites_path() && request.has_uri() &&
      request.rule->rewritten(request.path_text()).empty()) {
    return LocalResponse{414, Outcome::kBadRequest, "rewritten-path-too-long"};
  }
  const config::Limits& limits = request.runtime->config.limits;
  if (limits.request_body_bytes != 0 && request.framing.kind == http::BodyKind::kLength &&
      request.framing.length > limits.request_body_bytes) {
    return LocalResponse{413, Outcome::kBadRequest, "request-body-too-large"};
  }
  // A plain hit does not come here: its object was allowed to be requested.
  if (request.is_forward() && request.target.form == http::TargetForm::kAbsolute &&
      !request.runtime->destinations.is_safe_port(request.target.port())) {
    return LocalResponse{403, Outcome::kDenied, "unsafe-port"};
  }
  // RFC 9110 9.3.8: TRACE would show what proxies in front of us added; we do not forward it.
  if (head.method == http::Method::kTrace) return LocalResponse{405, Outcome::kMethod, "trace"};
  // RFC 9110 7.6.2: at 0 the recipient answers itself.
  std::uint64_t hops = 1;
  if (head.method == http::Method::kOptions &&
      http::parse_decimal(head.fields.value(FieldId::kMaxForwards), hops) && hops == 0) {
    return LocalResponse{204, Outcome::kMethod, "max-forwards"};
  }
  return std::nullopt;
}

bool has_content(const RequestContext& request) {
  const http::Framing& framing = request.framing;
  if (framing.kind == http::BodyKind::kLength) return framing.length != 0;
  return framing.kind != http::BodyKind::kNone;
}

PathDecision choose_path(const RequestContext& request) {
  const bool readable = is_get(request) || request.head.method == http::Method::kHead;
  if (!readable) return {RequestPath::kOrigin, http::Forwarded::kMethod};
  // Preconditions are the origin's to evaluate (RFC 9111 4.3.2).
  const bool precondition =
      request.head.fields.has_any({FieldId::kIfMatch, FieldId::kIfUnmodifiedSince});
  if (request.is_cacheable() && !has_content(request) && !precondition) return {};
  if (request.directives.only_if_cached) return {.path = RequestPath::kOnlyIfCached};
  return {RequestPath::kOrigin,
          precondition ? http::Forwarded::kRequest : http::Forwarded::kBypass};
}

// The whole object is requested if it will be stored; otherwise the request goes unchanged. The
// answers to ranges must not show what is hidden from clients.
bool depends_on_admission(const RequestContext& request, bool uncacheable) {
  const http::Fields& fields = request.head.fields;
  return is_get(request) && fields.has_any(kConditionalFields) && !request.directives.no_store &&
         !(uncacheable && fields.has(FieldId::kRange)) &&
         request.runtime->config.cache.cache_status_admission;
}

OriginRequestForm origin_request_form(const RequestContext& request, const MissFacts& facts) {
  if (!is_get(request)) return OriginRequestForm::kAsItIs;
  if (!request.head.fields.has_any(kConditionalFields)) return OriginRequestForm::kWhole;
  const bool shaped = depends_on_admission(request, facts.uncacheable) && facts.admitted;
  return shaped ? OriginRequestForm::kWhole : OriginRequestForm::kAsItIs;
}

http::Forwarded forwarded_for(http::ForwardCause cause) {
  return cause == http::ForwardCause::kRequest ? http::Forwarded::kRequest
                                               : http::Forwarded::kStale;
}

PartDecision decide_stored_part(const StoredPart& part, const RequestContext& request,
                                MonotonicTime now, WallTime wall) {
  const std::string_view asked = http::range_value(request.head);
  const bool conditional =
      request.head.fields.has_any({FieldId::kIfNoneMatch, FieldId::kIfModifiedSince});
  if (!part.content || asked.empty() || conditional ||
      !http::if_range_holds(request.head, part.validators, http::to_unix(wall))) {
    return {};
  }
  const http::ByteRange& stored = *part.content->range;
  std::vector<http::ByteRange> ranges;
  if (http::resolve_range(asked, *part.content->length, {}, ranges) !=
          http::RangeOutcome::kSatisfiable ||
      ranges.size() != 1 || ranges[0].begin < stored.begin || ranges[0].end > stored.end) {
    return {};
  }
  const auto reuse = http::decide_reuse(part.meta, request.directives, now, request.reuse());
  if (reuse.action == http::Reuse::kFresh) return {PartUse::kFresh, ranges[0]};
  if (reuse.action == http::Reuse::kStaleAllowed) return {PartUse::kStale, ranges[0]};
  return {.use = PartUse::kAsk, .forwarded = forwarded_for(reuse.cause)};
}

FoundPart judge_part(const store::Object& object, const http::StoredMeta& meta,
                     const RequestContext& request, MonotonicTime now, WallTime wall) {
  http::ResponseHead stored;
  http::read_stored_head(stored_head_of(object), stored);
  FoundPart part{.decision = {}, .content = http::partial_content(stored)};
  part.decision =
      decide_stored_part({.meta = meta,
                          .validators = http::stored_validators(meta, stored_head_of(object)),
                          .content = part.content},
                         request, now, wall);
  return part;
}

}  // namespace encore::server
