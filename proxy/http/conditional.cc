#include "proxy/http/conditional.h"

#include <algorithm>
#include <array>

#include "proxy/http/framing.h"

namespace encore::http {
namespace {

// Calls f for each member of a list of entity tags. A backslash is an ordinary character in them,
// unlike in quoted strings; a member that is no entity tag goes to the next comma.
template <typename F>
void for_each_etag(std::string_view rest, F&& f) {
  while (true) {
    while (!rest.empty() && (is_ows(rest.front()) || rest.front() == ',')) rest.remove_prefix(1);
    if (rest.empty()) return;
    std::size_t end = std::string_view::npos;
    const std::size_t quote = rest.starts_with("W/\"") ? 2 : 0;
    if (rest[quote] == '"') end = rest.find('"', quote + 1);
    end = end == std::string_view::npos ? rest.find(',') : end + 1;
    end = std::min(end, rest.size());
    f(trim_ows(rest.substr(0, end)));
    rest.remove_prefix(end);
  }
}

bool none_match_holds(const RequestHead& request, const Validators& stored) noexcept {
  bool matched = false;
  request.fields.for_each(FieldId::kIfNoneMatch, [&](const Field& field) {
    for_each_etag(field.value, [&](std::string_view etag) {
      matched = matched || etag == "*" || weak_match(etag, stored.etag);
    });
  });
  return !matched;
}

// One date in exactly one line, or none.
std::optional<UnixSeconds> date_of(const Fields& fields, FieldId id, UnixSeconds now) noexcept {
  if (fields.count(id) != 1) return std::nullopt;
  return parse_date(fields.value(id), now);
}

bool modified_since(const RequestHead& request, const Validators& stored,
                    UnixSeconds now) noexcept {
  const auto since = date_of(request.fields, FieldId::kIfModifiedSince, now);
  if (!since) return true;
  const UnixSeconds modified = stored.last_modified != kNoDate ? stored.last_modified : stored.date;
  if (modified == *since && modified == stored.last_modified && stored.date != kNoDate) {
    return !is_strong_date(modified, stored.date);
  }
  return modified == kNoDate || modified > *since;
}

}  // namespace

Validators stored_validators(const StoredMeta& meta, std::string_view stored_head) noexcept {
  Validators validators{.etag = stored_head.substr(meta.etag_offset, meta.etag_bytes),
                        .last_modified = meta.last_modified,
                        .date = meta.date};
  if (meta.last_modified == kNoDate || meta.is(StoredMeta::kSureDate)) return validators;
  // Without an entity tag only a strong date has confirmed it since.
  const UnixSeconds known =
      validators.etag.empty() ? meta.last_modified + kSureSeconds - 1 : meta.last_modified;
  validators.date = std::min(meta.date, known);
  return validators;
}

Condition evaluate_conditions(const RequestHead& request, const Validators& stored,
                              unsigned stored_status, UnixSeconds now) noexcept {
  const Fields& fields = request.fields;
  if (fields.has_any({FieldId::kIfMatch, FieldId::kIfUnmodifiedSince})) return Condition::kForward;
  if (stored_status < 200 || stored_status > 299) return Condition::kSend;
  if (fields.has(FieldId::kIfNoneMatch)) {
    return none_match_holds(request, stored) ? Condition::kSend : Condition::kNotModified;
  }
  if (!fields.has(FieldId::kIfModifiedSince)) return Condition::kSend;
  return modified_since(request, stored, now) ? Condition::kSend : Condition::kNotModified;
}

bool if_range_holds(const RequestHead& request, const Validators& stored,
                    UnixSeconds now) noexcept {
  const Fields& fields = request.fields;
  if (!fields.has(FieldId::kIfRange)) return true;
  const std::string_view value = fields.value(FieldId::kIfRange);
  if (fields.count(FieldId::kIfRange) != 1) return false;
  if (is_etag(value)) return strong_match(value, stored.etag);
  const auto date = parse_date(value, now);
  return date && *date == stored.last_modified && is_strong_date(stored.last_modified, stored.date);
}

void append_validation_fields(const Validators& stored, std::string& out) {
  if (!stored.etag.empty()) {
    out += "If-None-Match: ";
    out += stored.etag;
    out += "\r\n";
  }
  if (stored.last_modified != kNoDate) {
    std::array<char, kDateBytes> text{};
    write_date(stored.last_modified, text);
    out += "If-Modified-Since: ";
    out.append(text.data(), text.size());
    out += "\r\n";
  }
}

bool not_modified_matches(const Validators& stored, const Validators& received) noexcept {
  const bool dates = received.last_modified != kNoDate && stored.last_modified != kNoDate;
  const bool same_date = dates && received.last_modified == stored.last_modified;
  if (!received.etag.empty() && !stored.etag.empty()) {
    return weak_match(received.etag, stored.etag) ||
           (same_date && is_sure_date(stored.last_modified, stored.date) &&
            is_strong_date(received.last_modified, received.date));
  }
  if (!dates) return stored.any();
  // With an entity tag it was that, which the 304 has answered.
  return same_date && (!stored.etag.empty() || is_strong_date(stored.last_modified, stored.date));
}

HeadEvidence compare_head(const Validators& stored, const ResponseHead& response,
                          std::uint64_t stored_length, UnixSeconds now,
                          ValidatorStrength proof) noexcept {
  const Validators received = received_validators(response, now);
  const Validators proving = sufficient(stored, proof);
  HeadEvidence shown = HeadEvidence::kNothing;
  if (!received.etag.empty()) {
    if (received.etag != stored.etag) return HeadEvidence::kChange;
    if (!proving.etag.empty()) shown = HeadEvidence::kSame;
  }
  if (received.last_modified != kNoDate) {
    if (received.last_modified != stored.last_modified) return HeadEvidence::kChange;
    if (proving.last_modified != kNoDate) shown = HeadEvidence::kSame;
  }
  if (response.fields.has(FieldId::kContentLength)) {
    std::uint64_t length = 0;
    if (!parse_decimal(response.fields.value(FieldId::kContentLength), length) ||
        length != stored_length) {
      return HeadEvidence::kChange;
    }
    if (!received.any() && proof == ValidatorStrength::kUsual) shown = HeadEvidence::kSameLength;
  }
  return shown;
}

}  // namespace encore::http
