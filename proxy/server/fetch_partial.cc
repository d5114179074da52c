// Parts of a whole: fetching them where the whole is too large, storing them, joining them.
#include <algorithm>
#include <array>

#include "proxy/http/conditional.h"
#include "proxy/http/stored_head.h"
#include "proxy/http/targeted.h"
#include "proxy/server/fetch.h"
#include "proxy/server/relief.h"
#include "proxy/server/worker.h"

namespace encore::server {
namespace {

bool append_range(store::Body& from, const http::ByteRange& range, store::Body& to) {
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

bool append_range(const store::Object& from, const http::ByteRange& range, store::Body& to) {
  if (range.begin >= range.end) return true;
  if (!from.is_inline()) return append_range(*from.body(), range, to);
  const std::string_view text = from.inline_body().substr(range.begin, range.size());
  return to.append(std::as_bytes(std::span(text))) == text.size();
}

}  // namespace

// The whole was asked for in place of a range, and is larger than may be fetched for one, or than
// the cache lets in, or does not say how large it is, so that nothing can be cut from it before its
// end: the client's own request goes instead. False where others wait for the whole.
bool Fetch::restart_as_asked() {
  if (!plan_.whole || plan_.stored || head_.status != 200 ||
      http::range_value(request_->head).empty()) {
    return false;
  }
  const cache::Kernel& kernel = *worker_.shared().kernel;
  const cache::Key key{request_->hash, request_->key};
  const MonotonicTime now = worker_.loop().now();
  if (framing_.kind == http::BodyKind::kLength) {
    const bool refused_for_size =
        kernel.would_admit(key, now) && !kernel.would_admit(key, now, framing_.length);
    if (framing_.length <= request_->runtime->config.cache.range_fetch_max_bytes &&
        !refused_for_size) {
      return false;
    }
  }
  Inflight& inflight = worker_.shared().inflight;
  inflight.remove(*transfer_);
  if (transfer_->close_joining() != 0) return false;
  // The next range of it goes as it is at once.
  inflight.remember_unshared(
      request_->hash, Inflight::Unshared::kUncacheable,
      worker_.loop().now() + request_->runtime->config.cache.uncacheable_memory);
  plan_.whole = false;
  plan_.in_table = false;
  reconnect();
  return true;
}

bool may_complete(const store::Object& part, std::uint64_t bytes_max) {
  const http::StoredMeta& meta = meta_of(part).http;
  if (!meta.is(http::StoredMeta::kPartial) || part.body_size() > bytes_max) return false;
  http::ResponseHead stored;
  http::read_stored_head(stored_head_of(part), stored);
  const auto content = http::partial_content(stored);
  return content && content->range->begin == 0 &&
         http::is_strong_etag(http::stored_validators(meta, stored_head_of(part)).etag);
}

// RFC 9111 3.3: the rest, or, where it is another representation by now, all of it.
std::string Fetch::completion_fields() const {
  const store::Object& part = *plan_.completes;
  std::string lines = "Range: bytes=" + std::to_string(part.body_size()) + "-\r\nIf-Range: ";
  lines += http::stored_validators(meta_of(part).http, stored_head_of(part)).etag;
  return lines += "\r\n";
}

// The rest of a stored part has come: from here on it is the whole, whose first bytes are here
// already. False where it is not that rest.
bool Fetch::complete_part() {
  const store::Object& part = *plan_.completes;
  const std::string_view stored_head = stored_head_of(part);
  const http::UnixSeconds arrival = http::to_unix(response_wall_);
  const auto content = http::partial_content(head_);
  // partial_content() has seen to it that it is a 206.
  if (!content || framing_.kind != http::BodyKind::kLength ||
      content->range->size() != framing_.length || content->range->end != *content->length) {
    return false;
  }
  http::ResponseHead stored;
  http::read_stored_head(stored_head, stored);
  const auto before = http::partial_content(stored);
  const auto validators = http::stored_validators(meta_of(part).http, stored_head);
  if (!before || content->range->begin != before->range->end ||
      !http::may_combine(*before->range, validators, *before->length, *content->range,
                         http::received_validators(head_, arrival), *content->length)) {
    return false;
  }
  std::string merged;
  http::StoredMeta unused;
  const std::string age(head_.fields.value(http::FieldId::kAge));
  http::build_freshened_head(stored_head, head_, directives_, arrival,
                             request_->runtime->head_options, merged, unused);
  http::read_stored_head(merged, stored);
  http::build_whole_head(stored, *content->length, whole_head_);
  if (!age.empty()) whole_head_ += "Age: " + age + "\r\n";
  whole_head_ += private_lines(head_, directives_.stripped_fields, request_->runtime->head_options);
  whole_head_ += "\r\n";
  http::ParseError error;
  http::ParseProgress progress;
  if (http::parse_response(whole_head_, request_->runtime->head_limits, progress, head_, error) !=
      http::ParseStatus::kComplete) {
    whole_head_.clear();
    return false;
  }
  directives_ = http::effective_directives(head_.fields, request_->targets());
  head_bytes_ = whole_head_;
  framing_.length = *content->length;
  return true;
}

// The bytes of the stored part, in front of those that come. False where there is no memory.
bool Fetch::append_stored_part() {
  const store::Object& part = *plan_.completes;
  left_ -= part.body_size();
  const std::uint64_t size = part.body_size();
  // All of it at once: what is evicted for it may take some steps.
  while (!append_range(part, {body_->size(), size}, *body_)) {
    if (!worker_.relief().make_room_at_once()) return false;
  }
  return true;
}

bool Fetch::may_store_part() const {
  const auto content = http::partial_content(head_);
  const std::string_view asked = http::range_value(request_->head);
  return content && !asked.empty() && http::answers_range(*content, asked);
}

// Makes of the part that came, with the one that is stored where they fit, what is to be stored:
// its head, its tags, and its body if that is another one. False: it is not to be stored.
bool Fetch::join_parts(ObjectMeta& meta, std::string& head, std::string& tags,
                       store::BodyRef& body) {
  http::ResponseHead received;
  http::read_stored_head(head, received);
  const auto content = http::partial_content(received);
  if (!content) return false;
  std::string merged;
  http::ByteRange range = *content->range;
  const std::uint64_t length = *content->length;
  const CacheView found = worker_.lookup(*request_);
  if (found.object) {
    const http::StoredMeta& old = meta_of(*found.object).http;
    // A whole response that is fresh is worth more than a part.
    if (!old.is(http::StoredMeta::kPartial)) {
      if (worker_.loop().now() < found.fresh_until) return false;
    } else {
      http::ResponseHead old_head;
      http::read_stored_head(stored_head_of(*found.object), old_head);
      const auto stored = http::partial_content(old_head);
      const auto validators = http::stored_validators(old, stored_head_of(*found.object));
      if (stored && http::may_combine(*stored->range, validators, *stored->length, range,
                                      http::stored_validators(meta.http, head), length)) {
        body = joined_body(*found.object, *stored->range, range);
        if (!body) return false;
        // RFC 9111 3.4: fields that the new part does not have stay.
        http::StoredMeta unused;
        http::build_freshened_head(stored_head_of(*found.object), received, directives_,
                                   http::to_unix(response_wall_), request_->runtime->head_options,
                                   merged, unused);
        http::read_stored_head(merged, received);
        // What the new part keeps for the one who asked goes of the old one, too.
        std::string kept;
        if (http::drop_stripped(received, directives_, kept, unused)) {
          merged = std::move(kept);
          http::read_stored_head(merged, received);
        }
        if (old.is(http::StoredMeta::kPrivateOrigin)) {
          meta.http.flags |= http::StoredMeta::kPrivateOrigin;
        }
        if (tags.empty()) tags = tags_of(*found.object);
        range = {std::min(range.begin, stored->range->begin),
                 std::max(range.end, stored->range->end)};
      }
    }
  }
  std::string joined;
  if (range.size() == length) {
    http::build_whole_head(received, length, joined);
    meta.http.status = 200;
    meta.http.flags &= static_cast<std::uint16_t>(~http::StoredMeta::kPartial);
  } else {
    http::build_partial_head(received, range, length, joined);
  }
  place_etag(joined, received.fields.value(http::FieldId::kEtag), meta.http);
  head = std::move(joined);
  meta.http.head_bytes = static_cast<std::uint32_t>(head.size());
  return true;
}

// The bytes of both parts, the received ones where both have them. Empty where there is no room.
store::BodyRef Fetch::joined_body(const store::Object& old, const http::ByteRange& stored,
                                  const http::ByteRange& received) {
  const std::uint64_t begin = std::min(stored.begin, received.begin);
  const std::uint64_t size = std::max(stored.end, received.end) - begin;
  if (!reserve_up_to(size)) return {};
  auto made = worker_.shared().store->make_body({.length = size, .use = store::BodyUse::kStored});
  if (!made) return {};
  store::Body& body = **made;
  const http::ByteRange before = {
      0, received.begin > stored.begin ? received.begin - stored.begin : 0};
  const http::ByteRange after = {received.end - std::min(received.end, stored.begin),
                                 stored.end - stored.begin};
  const bool copied = append_range(old, before, body) &&
                      append_range(*body_, {0, received.size()}, body) &&
                      append_range(old, {std::min(after.begin, after.end), after.end}, body);
  if (!copied || body.size() != size) {
    body.abort();
    return {};
  }
  body.complete();
  return std::move(*made);
}

}  // namespace encore::server
