#include "proxy/exchange/response_coding.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "proxy/coding/negotiation.h"
#include "proxy/http/coded_head.h"
#include "proxy/http/stored_head.h"
#include "proxy/http/validators.h"
#include "proxy/settings/rules.h"
#include "proxy/transfer/coded_form.h"

namespace encore::server {
namespace {

using coding::Coding;
using http::FieldId;

// A date says nothing of the coding: what a client has a part of may be in one.
bool is_part_of_identity(const http::Fields& fields) {
  if (!fields.has(FieldId::kRange)) return false;
  return !fields.has(FieldId::kIfRange) || http::is_etag(fields.value(FieldId::kIfRange));
}

// The content of a source where all of it is in memory and short. Views, or put together in `room`.
std::optional<std::string_view> short_content(const ResponseSource& source, std::string& room) {
  if (!source.length || *source.length > Coders::kAtOnceBytes || source.on_disk) {
    return std::nullopt;
  }
  if (!source.body) return source.inline_body;
  if (source.body->state() != store::BodyState::kComplete) return std::nullopt;
  auto cursor = source.body->open(0);
  if (!cursor) return std::nullopt;
  while (room.size() < *source.length) {
    std::array<iovec, 4> parts;
    const auto peeked = cursor->peek(parts, *source.length - room.size());
    if (peeked.bytes == 0) return std::nullopt;
    for (std::size_t i = 0; i < peeked.parts; ++i) {
      room.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
    }
    cursor->advance(peeked.bytes);
  }
  return room;
}

// True if a client holds a coded form of what a 304 speaks of, whose tag is the weak one.
bool shows_weak_tag(const http::RequestHead& request, std::string_view etag) {
  bool shown = false;
  request.fields.for_each_member(FieldId::kIfNoneMatch, [&](std::string_view member) {
    shown = shown || (member.starts_with("W/") && http::weak_match(member, etag));
  });
  return shown;
}

}  // namespace

std::optional<Coding> wanted_coding(const http::RequestHead& request,
                                    const Compression& compression) {
  const http::Fields& fields = request.fields;
  if (request.version == http::Version::kHttp10 || is_part_of_identity(fields) ||
      fields.list_has(FieldId::kCacheControl, "no-transform")) {
    return std::nullopt;
  }
  return coding::choose(fields, compression.offered());
}

HitForm choose_hit_form(const RequestView& view, const Compression& compression, Coders& coders,
                        CacheView& found) {
  if (!view.request_policy->compress) return HitForm::kIdentity;
  const std::uint8_t note = found.object->note();
  if (note == compression.note_of(false)) return HitForm::kIdentity;
  if (note != compression.note_of(true)) return HitForm::kUnknown;
  const auto coding = wanted_coding(*view.head, compression);
  if (!coding) return HitForm::kVaries;
  const store::Object* const form = found.object->form(coding::number_of(*coding));
  if (form == nullptr || meta_of(*form).plain == 0) return HitForm::kUnknown;
  coders.count_response(*coding);
  found.object = store::ObjectRef::share(*form);
  return HitForm::kCoded;
}

bool ResponseCoding::is_covered(const ResponseSource& source,
                                const store::ObjectRef* object) const {
  const Compression& compression = *request_.runtime->compression;
  if (object != nullptr) {
    const std::uint8_t note = (*object)->note();
    if (note == compression.note_of(true)) return true;
    if (note == compression.note_of(false)) return false;
  }
  http::ResponseHead head;
  http::read_stored_head(source.head, head);
  const bool covered = compression.covers(head, source.length);
  if (object != nullptr) (*object)->set_note(compression.note_of(covered));
  return covered;
}

void ResponseCoding::apply(ResponseSource& source, const store::ObjectRef* object) {
  if (coders_ == nullptr || !request_.runtime->compression || !request_.request_policy->compress)
    return;
  if (source.meta->status == 304) {
    weaken_not_modified(source);
    return;
  }
  if (!is_covered(source, object)) return;
  coding_ = wanted_coding(request_.head, *request_.runtime->compression);
  if (!coding_) {
    say_varies(source);
    return;
  }
  identity_ = source;
  const std::size_t number = coding::number_of(*coding_);
  const store::Object* const form = object == nullptr ? nullptr : (*object)->form(number);
  if (form != nullptr) {
    take_form(*form, source);
    return;
  }
  if (request_.head.method != http::Method::kHead && code_at_once(source, object)) return;
  if (!coding_) {
    say_varies(source);
    return;
  }
  if (object != nullptr && source.body) object_ = *object;
  set_head(source, std::nullopt);
  source.head = head_;
  source.meta = &meta_;
  source.coding = coding_;
  source.has_ranges = false;
  source.length.reset();
  trailers_ = without_body_digests(source.stored_trailers);
  source.stored_trailers = trailers_;
}

// Others get it in a coding, so that caches behind us must not give it to them.
void ResponseCoding::say_varies(ResponseSource& source) {
  http::ResponseHead head;
  http::read_stored_head(source.head, head);
  if (http::varies_by_coding(head.fields)) return;
  more_fields_ = source.more_fields;
  more_fields_ += http::kVaryByCodingField;
  source.more_fields = more_fields_;
}

// Passed on to a client that asked by the tag of a coded form: that is what it is to keep.
void ResponseCoding::weaken_not_modified(ResponseSource& source) {
  http::ResponseHead head;
  http::read_stored_head(source.head, head);
  const std::string_view etag = head.fields.value(FieldId::kEtag);
  if (!http::is_strong_etag(etag) || !shows_weak_tag(request_.head, etag)) return;
  head_ = source.head;
  http::weaken_etag(head_);
  source.head = head_;
  if (!http::varies_by_coding(head.fields)) say_varies(source);
}

void ResponseCoding::take_form(const store::Object& form, ResponseSource& source) {
  source.head = stored_head_of(form);
  source.meta = &meta_of(form).http;
  source.length = form.body_size();
  source.body = form.is_inline() ? store::BodyRef() : store::BodyRef::share(form.body());
  source.inline_body = form.inline_body();
  source.stored_trailers = trailers_of(form);
  source.on_disk.reset();
  source.has_ranges = false;
}

void ResponseCoding::set_head(const ResponseSource& source, std::optional<std::uint64_t> length) {
  http::ResponseHead head;
  http::read_stored_head(source.head, head);
  meta_ = *source.meta;
  std::string built;
  http::build_coded_head(head, coding::to_string(*coding_), length, built, meta_);
  head_ = std::move(built);
  flushes_ = media_type(head.fields.value(FieldId::kContentType)) == "text/event-stream";
}

// Codes content that is short and there. False, and no coding any more, if it would not become
// shorter.
bool ResponseCoding::code_at_once(ResponseSource& source, const store::ObjectRef* object) {
  std::string room;
  const auto content = short_content(source, room);
  if (!content) return false;
  const Compression& compression = *request_.runtime->compression;
  auto coded = coders_->code(compression, *coding_, *content);
  if (!coded || coded->size() >= content->size()) {
    if (coded && object != nullptr) (*object)->set_note(compression.note_of(false));
    coding_.reset();
    return false;
  }
  coded_ = std::move(*coded);
  if (object != nullptr) coders_->keep(request_, **object, *coding_, coded_);
  set_head(source, coded_.size());
  trailers_ = without_body_digests(source.stored_trailers);
  source.head = head_;
  source.meta = &meta_;
  source.length = coded_.size();
  source.body = {};
  source.inline_body = coded_;
  source.stored_trailers = trailers_;
  source.has_ranges = false;
  return true;
}

ResponsePlan ResponseCoding::plan(ResponseSource& source, const store::ObjectRef* object,
                                  const ResponseMoment& moment, net::Deferred& more) {
  apply(source, object);
  ResponsePlan plan = plan_response(source, moment);
  const bool begins = source.coding && plan.content == ResponsePlan::Content::kRest;
  if (begins && !begin(source, more)) plan = plan_response(source, moment);
  return plan;
}

bool ResponseCoding::begin(ResponseSource& source, net::Deferred& more) {
  using Keep = CodedBody::Keep;
  body_ = coders_->begin(*request_.runtime->compression,
                         {.coding = *coding_,
                          .flush = flushes_ ? CodedBody::Flush::kAtOnce : CodedBody::Flush::kSoon,
                          .keep = object_ ? Keep::kAll : Keep::kNothing},
                         [&more] { more.schedule(); });
  live_trailers_ = source.trailers;
  if (body_ != nullptr && (source.on_disk || set_content(source.body))) return true;
  // Without memory for an encoder the client gets the identity.
  body_.reset();
  source = std::move(identity_);
  coding_.reset();
  object_ = {};
  say_varies(source);
  return false;
}

bool ResponseCoding::set_content(const store::BodyRef& body) {
  BodyReader& content = body_->source();
  if (!content.set_body(body)) return false;
  if (identity_.length) {
    content.add_range(0, *identity_.length);
  } else {
    content.add_rest();
  }
  return true;
}

void ResponseCoding::open(BodyReader& content) {
  const bool opened = content.set_body(body_->body());
  ENCORE_CHECK(opened, "a body is kept until its reader has opened it");
  if (!body_->keeps_all()) body_->body()->stop_retaining();
  content.set_made_from(body_->source(), body_->encoder_bytes());
  content.add_rest();
}

void ResponseCoding::produce(std::uint64_t position) {
  if (body_ == nullptr || is_done_) return;
  body_->produce(position);
  const std::uint64_t read = body_->source().body_bytes();
  const std::uint64_t made = body_->body()->size();
  ENCORE_CHECK(read >= counted_read_ && made >= counted_made_, "a body that is made only grows");
  coders_->count_work(*coding_, read - counted_read_, made - counted_made_);
  counted_read_ = read;
  counted_made_ = made;
  if (body_->body()->state() != store::BodyState::kComplete) return;
  is_done_ = true;
  if (live_trailers_ != nullptr) trailers_ = without_body_digests(*live_trailers_);
  if (!object_) return;
  // A form that is no shorter is worth neither its memory nor another attempt.
  if (made < read) {
    coders_->keep(request_, *object_, *coding_, body_->body());
  } else {
    object_->set_note(request_.runtime->compression->note_of(false));
  }
}

void ResponseCoding::count() {
  if (coding_) coders_->count_response(*coding_);
}

}  // namespace encore::server
