// What a stored part of a response can answer: a range that lies within it (RFC 9111 3.3).
#include "proxy/http/range.h"
#include "proxy/http/reuse.h"
#include "proxy/http/stored_head.h"
#include "proxy/server/exchange.h"
#include "proxy/server/response.h"

namespace encore::server {

// Answers the request from the stored part, or asks the origin.
void Exchange::decide_part() {
  const store::Object& object = *found_.object;
  const http::StoredMeta meta = meta_until(object, found_.fresh_until);
  http::ResponseHead stored;
  http::read_stored_head(stored_head_of(object), stored);
  const auto content = http::partial_content(stored);
  const std::string_view asked = http::range_value(request_->head);
  const http::UnixSeconds wall = http::to_unix(worker().loop().wall_now());
  const bool conditional =
      request_->head.fields.has_any({http::FieldId::kIfNoneMatch, http::FieldId::kIfModifiedSince});
  std::vector<http::ByteRange> ranges;
  const bool within =
      content && is_get() && !asked.empty() && !conditional &&
      http::if_range_holds(request_->head, http::stored_validators(meta, stored_head_of(object)),
                           wall) &&
      http::resolve_range(asked, *content->length, {}, ranges) ==
          http::RangeOutcome::kSatisfiable &&
      ranges.size() == 1 && ranges[0].begin >= content->range->begin &&
      ranges[0].end <= content->range->end;
  if (!within) {
    cache_status_.forwarded = http::Forwarded::kPartial;
    fetch();
    return;
  }
  const auto decision = http::decide_reuse(meta, request_->directives, now(), request_->reuse());
  if (decision.action == http::Reuse::kFresh || decision.action == http::Reuse::kStaleAllowed) {
    const bool fresh = decision.action == http::Reuse::kFresh;
    respond_part(*content, ranges[0], fresh ? Outcome::kHit : Outcome::kStale);
    return;
  }
  cache_status_.forwarded = decision.cause == http::ForwardCause::kRequest
                                ? http::Forwarded::kRequest
                                : http::Forwarded::kStale;
  fetch();
}

void Exchange::respond_part(const http::ContentRange& content, const http::ByteRange& range,
                            Outcome outcome) {
  const store::ObjectRef& object = found_.object;
  http::ResponseHead stored;
  http::read_stored_head(stored_head_of(*object), stored);
  std::string head;
  http::build_partial_head(stored, range, *content.length, head);
  Source source = source_of(object, outcome);
  responding_ = true;
  record_.status = 206;
  add_tail(source, false, head);
  sender_.add_text(head);
  add_content(source, range.begin - content.range->begin, range.end - content.range->begin);
  pump();
}

}  // namespace encore::server
