#include "proxy/origin/parts.h"

#include <algorithm>
#include <array>
#include <span>

#include "proxy/http/conditional.h"
#include "proxy/http/head_text.h"
#include "proxy/http/parser.h"
#include "proxy/http/range.h"
#include "proxy/http/stored_head.h"
#include "proxy/origin/entry.h"

namespace encore::server {
namespace {

bool append_of_body(store::Body& from, const http::ByteRange& range, store::Body& to) {
  auto cursor = from.open(range.begin);
  if (!cursor) return false;
  std::uint64_t left = range.size();
  std::array<iovec, 16> parts;
  while (left != 0) {
    const auto peeked = cursor->peek(parts, left);
    if (peeked.bytes == 0) return false;
    for (const iovec& part : std::span(parts.data(), peeked.parts)) {
      const std::span bytes(static_cast<const std::byte*>(part.iov_base), part.iov_len);
      if (to.append(bytes) != bytes.size()) return false;
    }
    cursor->advance(peeked.bytes);
    left -= peeked.bytes;
  }
  return true;
}

}  // namespace

bool append_range(const store::Object& from, const http::ByteRange& range, store::Body& to) {
  if (range.begin >= range.end) return true;
  if (!from.is_inline()) return append_of_body(*from.body(), range, to);
  const std::string_view text = from.inline_body().substr(range.begin, range.size());
  return to.append(std::as_bytes(std::span(text))) == text.size();
}

bool may_complete(const store::Object& part, std::uint64_t bytes_max) {
  const http::StoredMeta& meta = meta_of(part).http;
  if (!meta.is(http::StoredMeta::kPartial) || part.body_size() > bytes_max) return false;
  http::ResponseHead stored;
  http::read_stored_head(stored_head_of(part), stored);
  const auto content = http::partial_content(stored);
  // RFC 9110 15.3.7.3: parts are combined by a strong validator.
  return content && content->range->begin == 0 &&
         http::is_strong_etag(http::stored_validators(meta, stored_head_of(part)).etag);
}

std::string completion_fields(const store::Object& part) {
  std::string lines = "Range: bytes=" + std::to_string(part.body_size()) + "-\r\nIf-Range: ";
  lines += http::stored_validators(meta_of(part).http, stored_head_of(part)).etag;
  return lines += "\r\n";
}

bool complete_part(const RequestContext& request, const store::Object& part,
                   ReceivedResponse& received) {
  const std::string_view stored_head = stored_head_of(part);
  const auto content = http::partial_content(received.head);
  // partial_content() has seen to it that it is a 206.
  if (!content || received.framing.kind != http::BodyKind::kLength ||
      content->range->size() != received.framing.length ||
      content->range->end != *content->length) {
    return false;
  }
  http::ResponseHead stored;
  http::read_stored_head(stored_head, stored);
  const auto before = http::partial_content(stored);
  const auto validators = http::stored_validators(meta_of(part).http, stored_head);
  if (!before || content->range->begin != before->range->end ||
      !http::may_combine(*before->range, validators, *before->length, *content->range,
                         http::received_validators(received.head, received.arrival()),
                         *content->length)) {
    return false;
  }
  std::string merged;
  http::StoredMeta unused;
  http::build_freshened_head(stored_head, received.head, received.directives, received.arrival(),
                             request.head_options(), merged, unused);
  http::read_stored_head(merged, stored);
  std::string whole;
  http::build_whole_head(stored, *content->length, whole);
  const std::string_view age = received.head.fields.value(http::FieldId::kAge);
  if (!age.empty()) http::append_field("Age", age, whole);
  whole +=
      private_lines(received.head, received.directives.stripped_fields, request.head_options());
  whole += "\r\n";
  http::ResponseHead head;
  http::ParseError error;
  http::ParseProgress progress;
  if (http::parse_response(whole, request.runtime->head_limits, progress, head, error) !=
      http::ParseStatus::kComplete) {
    return false;
  }
  received.framing.length = *content->length;
  received.head = std::move(head);
  received.head_bytes = whole;
  received.keep();
  received.directives = governing_directives(request, received);
  received.completed = true;
  return true;
}

bool fits_range(const RequestContext& request, const http::ResponseHead& head) {
  const auto content = http::partial_content(head);
  const std::string_view asked = http::range_value(request.head);
  return content && !asked.empty() && http::answers_range(*content, asked);
}

namespace {

// The bytes of both parts, the received ones where both have them. Empty where there is no room.
store::BodyRef joined_body(OriginServices& services, const store::Object& old,
                           const http::ByteRange& stored, store::Body& came,
                           const http::ByteRange& received) {
  const std::uint64_t begin = std::min(stored.begin, received.begin);
  const std::uint64_t size = std::max(stored.end, received.end) - begin;
  auto made = services.store.make_body({.length = size, .use = store::BodyUse::kStored});
  if (!made) return {};
  store::Body& body = **made;
  const http::ByteRange before = {
      0, received.begin > stored.begin ? received.begin - stored.begin : 0};
  const http::ByteRange after = {received.end - std::min(received.end, stored.begin),
                                 stored.end - stored.begin};
  const bool copied = append_range(old, before, body) &&
                      append_of_body(came, {0, received.size()}, body) &&
                      append_range(old, {std::min(after.begin, after.end), after.end}, body);
  if (!copied || body.size() != size) {
    body.abort();
    return {};
  }
  body.complete();
  return std::move(*made);
}

// RFC 9111 3.4: fields that the new part does not have stay; what it keeps for the one who asked
// goes of the old one, too. `merged` holds what `head` views then.
void merge_heads(const RequestContext& request, const ReceivedResponse& received,
                 const store::Object& old, std::string& merged, http::ResponseHead& head) {
  http::StoredMeta unused;
  http::build_freshened_head(stored_head_of(old), head, received.directives, received.arrival(),
                             request.head_options(), merged, unused);
  http::read_stored_head(merged, head);
  std::string kept;
  if (!http::drop_stripped(head, received.directives, kept, unused)) return;
  merged = std::move(kept);
  http::read_stored_head(merged, head);
}

// The result of joining a part that came with the one that is stored.
struct Joining {
  http::ResponseHead head;  // views into the part's head, or into `merged`
  std::string merged;
  http::ByteRange range;
  std::uint64_t length = 0;  // that of the whole
};

// With the stored part, where the two fit. False: there is no room for both.
bool join_with(OriginServices& services, const RequestContext& request,
               const ReceivedResponse& received, const std::function<bool(std::uint64_t)>& reserve,
               const store::Object& old, const PartToStore& part, Joining& joining) {
  const http::StoredMeta& meta = meta_of(old).http;
  http::ResponseHead old_head;
  http::read_stored_head(stored_head_of(old), old_head);
  const auto stored = http::partial_content(old_head);
  const auto validators = http::stored_validators(meta, stored_head_of(old));
  if (!stored ||
      !http::may_combine(*stored->range, validators, *stored->length, joining.range,
                         http::stored_validators(part.meta.http, part.head), joining.length)) {
    return true;
  }
  const http::ByteRange both = {std::min(joining.range.begin, stored->range->begin),
                                std::max(joining.range.end, stored->range->end)};
  if (!reserve(both.size())) return false;
  part.body = joined_body(services, old, *stored->range, *part.body, joining.range);
  if (!part.body) return false;
  merge_heads(request, received, old, joining.merged, joining.head);
  using http::StoredMeta;
  for (const auto flag : {StoredMeta::kPrivateOrigin, StoredMeta::kWithCookie}) {
    if (meta.is(flag)) part.meta.http.flags |= flag;
  }
  // A part of the joined body came to a request with Cookie: no freshness is guessed for all of it
  // (docs/decisions/0301).
  if (meta.is(StoredMeta::kWithCookie) && part.meta.http.is(StoredMeta::kHeuristic) &&
      !received.request_policy->store.freshness.heuristic_with_cookie) {
    part.meta.http.flags |= StoredMeta::kNeverFresh;
    part.meta.http.swr_seconds = part.meta.http.sie_seconds = 0;
  }
  if (part.tags.empty()) part.tags = tags_of(old);
  joining.range = both;
  return true;
}

}  // namespace

bool join_parts(OriginServices& services, const RequestContext& request,
                const ReceivedResponse& received, const std::function<bool(std::uint64_t)>& reserve,
                const PartToStore& part) {
  Joining joining;
  http::read_stored_head(part.head, joining.head);
  const auto content = http::partial_content(joining.head);
  if (!content) return false;
  joining.range = *content->range;
  joining.length = *content->length;
  const CacheView found = services.worker.lookup(request);
  // An object on disk may be whole.
  if (found.disk && services.loop.now() < found.fresh_until) return false;
  if (found.object) {
    // A whole response that is fresh is worth more than a part.
    if (!meta_of(*found.object).http.is(http::StoredMeta::kPartial)) {
      if (services.loop.now() < found.fresh_until) return false;
    } else if (!join_with(services, request, received, reserve, *found.object, part, joining)) {
      return false;
    }
  }
  std::string joined;
  if (joining.range.size() == joining.length) {
    http::build_whole_head(joining.head, joining.length, joined);
    part.meta.http.status = 200;
    part.meta.http.flags &= static_cast<std::uint16_t>(~http::StoredMeta::kPartial);
  } else {
    http::build_partial_head(joining.head, joining.range, joining.length, joined);
  }
  place_etag(joined, joining.head.fields.value(http::FieldId::kEtag), part.meta.http);
  part.head = std::move(joined);
  part.meta.http.head_bytes = static_cast<std::uint32_t>(part.head.size());
  return true;
}

}  // namespace encore::server
