#include "proxy/http/continuation.h"

#include "proxy/http/validators.h"

namespace encore::http {

std::string Continuation::range_value() const {
  std::string text = "bytes=" + std::to_string(range.begin) + "-";
  if (!to_end) text += std::to_string(range.end - 1);
  return text;
}

std::optional<Continuation> continue_response(const ResponseHead& response,
                                              const MissingPart& missing, UnixSeconds now) {
  const Fields& fields = response.fields;
  if (response.status != 200 || fields.count(FieldId::kEtag) > 1 ||
      fields.count(FieldId::kLastModified) > 1 || fields.list_has(FieldId::kAcceptRanges, "none")) {
    return std::nullopt;
  }
  const Validators proving =
      sufficient(received_validators(response, now), ValidatorStrength::kStrong);
  Continuation wanted;
  wanted.etag = proving.etag;
  // Two versions of one date differ in their lengths, if in anything that shows.
  if (wanted.etag.empty()) {
    if (proving.last_modified == kNoDate || !missing.length) return std::nullopt;
    wanted.last_modified = fields.value(FieldId::kLastModified);
  }
  wanted.range = missing.range;
  wanted.to_end = missing.to_end || (missing.length && missing.range.end >= *missing.length);
  wanted.length = missing.length;
  wanted.length_min = missing.length_min;
  wanted.coding = fields.value(FieldId::kContentEncoding);
  return wanted;
}

bool continues(const Continuation& wanted, const ResponseHead& answer,
               std::optional<std::uint64_t> body_bytes) {
  const Fields& fields = answer.fields;
  // One part, whose place and whole length are known.
  const auto content = partial_content(answer);
  if (!content || !body_bytes || *body_bytes != content->range->size()) return false;
  const std::uint64_t length = *content->length;
  if (length < wanted.length_min || (wanted.length && length != *wanted.length)) return false;
  const std::uint64_t end = wanted.to_end ? length : wanted.range.end;
  if (content->range->begin != wanted.range.begin || content->range->end != end) return false;
  // The answer may leave out what If-Range has made sure of, but its entity tag (RFC 9110 15.3.7).
  if (fields.has(FieldId::kContentEncoding) || wanted.etag.empty()) {
    if (fields.value(FieldId::kContentEncoding) != wanted.coding) return false;
  }
  if (!wanted.etag.empty()) {
    return fields.count(FieldId::kEtag) == 1 &&
           strong_match(fields.value(FieldId::kEtag), wanted.etag);
  }
  return fields.count(FieldId::kLastModified) == 1 &&
         fields.value(FieldId::kLastModified) == wanted.last_modified;
}

}  // namespace encore::http
