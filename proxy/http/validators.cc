#include "proxy/http/validators.h"

#include "proxy/http/scan.h"

namespace encore::http {
namespace {

std::string_view opaque(std::string_view etag) noexcept {
  return etag.starts_with("W/") ? etag.substr(2) : etag;
}

}  // namespace

Validators received_validators(const ResponseHead& response, UnixSeconds now) noexcept {
  const Fields& fields = response.fields;
  return {.etag = fields.value(FieldId::kEtag),
          .last_modified = parse_date(fields.value(FieldId::kLastModified), now).value_or(kNoDate),
          .date = parse_date(fields.value(FieldId::kDate), now).value_or(kNoDate)};
}

bool same_validator(const Validators& a, const Validators& b) noexcept {
  if (!a.etag.empty() && !b.etag.empty()) return weak_match(a.etag, b.etag);
  return a.last_modified != kNoDate && a.last_modified == b.last_modified;
}

bool is_etag(std::string_view text) noexcept {
  text = opaque(text);
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return false;
  const char* const begin = text.data();
  const char* const last = begin + text.size() - 1;
  return scan::find<scan::NotInEtag>(begin, begin + 1, last) == last;
}

bool is_strong_etag(std::string_view etag) noexcept { return is_etag(etag) && etag[0] == '"'; }

bool strong_match(std::string_view a, std::string_view b) noexcept {
  return a == b && is_strong_etag(a);
}

bool weak_match(std::string_view a, std::string_view b) noexcept {
  return !a.empty() && opaque(a) == opaque(b);
}

bool is_strong_date(UnixSeconds last_modified, UnixSeconds date) noexcept {
  return last_modified != kNoDate && date != kNoDate && last_modified < date;
}

bool is_sure_date(UnixSeconds last_modified, UnixSeconds date) noexcept {
  return is_strong_date(last_modified, date) && date - last_modified >= kSureSeconds;
}

Validators sufficient(const Validators& validators, ValidatorStrength proof) noexcept {
  Validators proving = validators;
  const bool is_strong = proof == ValidatorStrength::kStrong;
  if (is_strong && !is_strong_etag(validators.etag)) proving.etag = {};
  const bool holds = is_strong ? is_sure_date(validators.last_modified, validators.date)
                               : is_strong_date(validators.last_modified, validators.date);
  if (!holds) proving.last_modified = kNoDate;
  return proving;
}

}  // namespace encore::http
