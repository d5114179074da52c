#include "proxy/http/parser.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "proxy/http/raw_bytes.h"
#include "proxy/http/scan.h"

namespace encore::http {
namespace {

constexpr std::array<std::string_view, 18> kReasonNames = {
#define ENCORE_HTTP_REASON(id, name) name,
    ENCORE_HTTP_PARSE_REASONS(ENCORE_HTTP_REASON)
#undef ENCORE_HTTP_REASON
};

// Position of a parse. `reason` is set with kBad.
struct Cursor {
  const char* begin;
  const char* p;
  const char* end;
  ParseReason reason = ParseReason::kNone;

  bool at_end() const noexcept { return p == end; }
  std::size_t consumed() const noexcept { return static_cast<std::size_t>(p - begin); }
  ParseStatus bad(ParseReason why) noexcept {
    reason = why;
    return ParseStatus::kBad;
  }
};

std::string_view between(const char* first, const char* last) noexcept {
  return {first, static_cast<std::size_t>(last - first)};
}

// Why a line may not hold the control character `c`.
ParseReason control_reason(char c) noexcept {
  if (c == '\n') return ParseReason::kBareLf;
  return c == '\r' ? ParseReason::kBareCr : ParseReason::kControlCharacter;
}

// Steps over the CRLF that must stand at the cursor; anything else there is `otherwise`, but for
// line ends, which have reasons of their own.
ParseStatus skip_line_end(Cursor& at, ParseReason otherwise) noexcept {
  if (at.at_end()) return ParseStatus::kIncomplete;
  if (*at.p == '\n') return at.bad(ParseReason::kBareLf);
  if (*at.p != '\r') return at.bad(otherwise);
  if (at.end - at.p < 2) return ParseStatus::kIncomplete;
  if (at.p[1] != '\n') return at.bad(ParseReason::kBareCr);
  at.p += 2;
  return ParseStatus::kComplete;
}

ParseStatus parse_version(Cursor& at, Version& version) noexcept {
  static constexpr std::string_view kName = "HTTP/";
  const auto left = static_cast<std::size_t>(at.end - at.p);
  if (left < 8) {
    return std::memcmp(at.p, kName.data(), std::min(left, kName.size())) == 0
               ? ParseStatus::kIncomplete
               : at.bad(ParseReason::kBadVersion);
  }
  if (std::memcmp(at.p, kName.data(), kName.size()) != 0 || !is_digit(at.p[5]) || at.p[6] != '.' ||
      !is_digit(at.p[7])) {
    return at.bad(ParseReason::kBadVersion);
  }
  if (at.p[5] != '1') return at.bad(ParseReason::kUnsupportedVersion);
  version = at.p[7] == '0' ? Version::kHttp10 : Version::kHttp11;
  at.p += 8;
  return ParseStatus::kComplete;
}

// Why no field name stands at the cursor, or that its end has not come yet.
ParseStatus refuse_name(Cursor& at) noexcept {
  const char* const stop = scan::find<scan::NameEnd>(at.begin, at.p, at.end);
  if (stop == at.end) return ParseStatus::kIncomplete;
  if (*stop == '\r') {
    if (at.end - stop < 2) return ParseStatus::kIncomplete;
    return at.bad(stop[1] == '\n' ? ParseReason::kNoColon : ParseReason::kBareCr);
  }
  if (*stop != ':') return at.bad(control_reason(*stop));
  if (stop == at.p) return at.bad(ParseReason::kEmptyName);
  return at.bad(is_ows(stop[-1]) ? ParseReason::kSpaceBeforeColon : ParseReason::kBadName);
}

// A token has no control characters: all that ends a good name is its colon.
ParseStatus parse_name(Cursor& at, Field& field) noexcept {
  const char* const colon = scan::find<scan::Colon>(at.begin, at.p, at.end);
  if (colon == at.end) return refuse_name(at);
  field.name = between(at.p, colon);
  field.id = classify_field(field.name);
  if (field.id == FieldId::kOther && !is_token(field.name)) return refuse_name(at);
  at.p = colon + 1;
  return ParseStatus::kComplete;
}

ParseStatus parse_value(Cursor& at, Field& field) noexcept {
  const char* first = at.p;
  while (first != at.end && is_ows(*first)) ++first;
  at.p = scan::find<scan::Control>(at.begin, first, at.end);
  const char* last = at.p;
  const ParseStatus status = skip_line_end(at, ParseReason::kControlCharacter);
  if (status != ParseStatus::kComplete) return status;
  while (last != first && is_ows(last[-1])) --last;
  field.value = between(first, last);
  return ParseStatus::kComplete;
}

// Field lines up to and with the empty line. With `may_end`, the end of input ends them too.
ParseStatus parse_field_lines(Cursor& at, const Limits& limits, Fields& fields, bool may_end) {
  fields.clear();
  for (std::size_t count = 0;; ++count) {
    if (at.at_end()) return may_end ? ParseStatus::kComplete : ParseStatus::kIncomplete;
    if (*at.p == '\r') return skip_line_end(at, ParseReason::kBareCr);
    if (is_ows(*at.p)) {
      return at.bad(count == 0 ? ParseReason::kLeadingSpace : ParseReason::kObsFold);
    }
    if (count == limits.fields_max) return at.bad(ParseReason::kTooManyFields);
    Field field;
    if (const auto status = parse_name(at, field); status != ParseStatus::kComplete) return status;
    if (const auto status = parse_value(at, field); status != ParseStatus::kComplete) return status;
    fields.add(field);
  }
}

ParseStatus parse_method(Cursor& at, RequestHead& head) noexcept {
  const char* first = at.p;
  if (at.end - at.p >= 4 && std::memcmp(at.p, "GET ", 4) == 0) {
    head.method = Method::kGet;
    at.p += 3;
  } else {
    while (!at.at_end() && is_token_char(*at.p)) ++at.p;
    if (at.at_end()) return ParseStatus::kIncomplete;
    if (at.p == first || *at.p != ' ') {
      return at.bad(*at.p == '\n' ? ParseReason::kBareLf : ParseReason::kBadMethod);
    }
    head.method = classify_method(between(first, at.p));
  }
  head.method_text = between(first, at.p);
  ++at.p;
  return ParseStatus::kComplete;
}

ParseStatus parse_target(Cursor& at, const Limits& limits, RequestHead& head) noexcept {
  const char* first = at.p;
  at.p = scan::find<scan::TargetEnd>(at.begin, first, at.end);
  head.has_raw_target = limits.raw_targets && !at.at_end() && is_beyond_ascii(*at.p);
  if (head.has_raw_target) [[unlikely]] {
    while (!at.at_end() && is_beyond_ascii(*at.p)) {
      at.p = scan::find<scan::TargetEnd>(at.begin, at.p + 1, at.end);
    }
  }
  head.target = between(first, at.p);
  if (head.target.size() > limits.target_bytes_max) return at.bad(ParseReason::kTargetTooLong);
  if (at.at_end()) return ParseStatus::kIncomplete;
  if (*at.p == '\n') return at.bad(ParseReason::kBareLf);
  if (*at.p != ' ' || head.target.empty()) return at.bad(ParseReason::kBadTarget);
  ++at.p;
  return ParseStatus::kComplete;
}

ParseStatus parse_lines(Cursor& at, const Limits& limits, RequestHead& head) {
  if (at.end - at.p >= 1 && *at.p == '\r') {
    const auto status = skip_line_end(at, ParseReason::kBareCr);
    if (status != ParseStatus::kComplete) return status;
  }
  if (at.at_end()) return ParseStatus::kIncomplete;
  if (const auto status = parse_method(at, head); status != ParseStatus::kComplete) return status;
  if (const auto status = parse_target(at, limits, head); status != ParseStatus::kComplete) {
    return status;
  }
  if (const auto status = parse_version(at, head.version); status != ParseStatus::kComplete) {
    return status;
  }
  if (const auto status = skip_line_end(at, ParseReason::kBadVersion);
      status != ParseStatus::kComplete) {
    return status;
  }
  return parse_field_lines(at, limits, head.fields, false);
}

// "200 OK" and its line end. The space before an empty phrase may be missing, as many servers
// leave it out.
ParseStatus parse_status_line(Cursor& at, ResponseHead& head) noexcept {
  if (const auto status = parse_version(at, head.version); status != ParseStatus::kComplete) {
    return status;
  }
  const auto left = at.end - at.p;
  if (left >= 1 && *at.p != ' ') return at.bad(ParseReason::kBadStatusLine);
  if (left < 4) return ParseStatus::kIncomplete;
  if (at.p[1] < '1' || !is_digit(at.p[1]) || !is_digit(at.p[2]) || !is_digit(at.p[3])) {
    return at.bad(ParseReason::kBadStatusLine);
  }
  head.status =
      static_cast<std::uint16_t>((at.p[1] - '0') * 100 + (at.p[2] - '0') * 10 + (at.p[3] - '0'));
  at.p += 4;
  if (at.at_end()) return ParseStatus::kIncomplete;
  head.reason = {};
  if (*at.p == ' ') {
    const char* first = ++at.p;
    at.p = scan::find<scan::Control>(at.begin, first, at.end);
    head.reason = between(first, at.p);
  }
  return skip_line_end(at, ParseReason::kBadStatusLine);
}

ParseStatus parse_lines(Cursor& at, const Limits& limits, ResponseHead& head) {
  if (at.at_end()) return ParseStatus::kIncomplete;
  if (const auto status = parse_status_line(at, head); status != ParseStatus::kComplete) {
    return status;
  }
  return parse_field_lines(at, limits, head.fields, false);
}

// Looks only at bytes not seen before: whether an empty line, or a byte that cannot stand in a
// head, has arrived since. If so the head is worth parsing.
bool worth_parsing(std::string_view bytes, const ParseProgress& progress) noexcept {
  if (progress.scanned == 0) return true;
  const char* begin = bytes.data();
  const char* end = begin + bytes.size();
  // The three bytes before may be the start of the CRLFCRLF.
  const char* p = begin + (progress.scanned > 3 ? progress.scanned - 3 : 0);
  while (true) {
    p = scan::find<scan::Control>(begin, p, end);
    if (p == end) return false;
    if (*p == '\n' && p != begin && p[-1] == '\r') {
      ++p;
    } else if (*p == '\r') {
      if (end - p < 2) return false;
      if (p[1] != '\n') return true;
      p += 2;
    } else {
      return true;
    }
    if (end - p >= 1 && *p == '\r') return true;
  }
}

std::uint16_t status_of(ParseReason reason) noexcept {
  switch (reason) {
    case ParseReason::kTargetTooLong:
      return 414;
    case ParseReason::kHeadTooLarge:
    case ParseReason::kTooManyFields:
      return 431;
    case ParseReason::kUnsupportedVersion:
      return 505;
    default:
      return 400;
  }
}

template <typename Head>
ParseStatus parse_head(std::string_view bytes, const Limits& limits, ParseProgress& progress,
                       Head& head, Cursor& at) {
  // If no more bytes may come, the whole is parsed once more for the reason.
  const bool full = bytes.size() >= limits.head_bytes_max;
  ParseStatus status = ParseStatus::kIncomplete;
  if (full || worth_parsing(bytes, progress)) {
    status = parse_lines(at, limits, head);
    head.head_size = at.consumed();
    if (status == ParseStatus::kComplete && head.head_size > limits.head_bytes_max) {
      return at.bad(ParseReason::kHeadTooLarge);
    }
  }
  if (status == ParseStatus::kIncomplete) {
    if (full) return at.bad(ParseReason::kHeadTooLarge);
    progress.scanned = bytes.size();
  }
  return status;
}

// The bytes of a head with an encoded target, which is longer.
std::string encode_raw_target(std::string_view head_bytes, const RequestHead& head) {
  const auto begin = static_cast<std::size_t>(head.target.data() - head_bytes.data());
  std::string encoded(head_bytes.substr(0, begin));
  append_encoded(head.target, encoded);
  return encoded += head_bytes.substr(begin + head.target.size());
}

}  // namespace

std::string_view to_string(ParseReason reason) noexcept {
  return kReasonNames[static_cast<std::size_t>(reason)];
}

ParseStatus parse_request(std::string_view bytes, const Limits& limits, ParseProgress& progress,
                          RequestHead& head, ParseError& error) {
  Cursor at{bytes.data(), bytes.data(), bytes.data() + bytes.size()};
  const ParseStatus status = parse_head(bytes, limits, progress, head, at);
  if (status == ParseStatus::kBad) error = {status_of(at.reason), at.reason};
  return status;
}

ParseStatus parse_lax_request(std::string_view bytes, const Limits& limits, ParseProgress& progress,
                              RequestHead& head, ParseError& error, std::string& encoded) {
  Limits lax = limits;
  lax.raw_targets = true;
  const ParseStatus status = parse_request(bytes, lax, progress, head, error);
  if (status != ParseStatus::kComplete || !head.has_raw_target) return status;
  const std::size_t head_size = head.head_size;
  encoded = encode_raw_target(bytes.substr(0, head_size), head);
  const ParseStatus result = parse_request(encoded, limits, head, error);
  head.head_size = head_size;
  return result;
}

ParseStatus parse_response(std::string_view bytes, const Limits& limits, ParseProgress& progress,
                           ResponseHead& head, ParseError& error) {
  Cursor at{bytes.data(), bytes.data(), bytes.data() + bytes.size()};
  const ParseStatus status = parse_head(bytes, limits, progress, head, at);
  if (status == ParseStatus::kBad) error = {502, at.reason};
  return status;
}

bool parse_fields(std::string_view bytes, const Limits& limits, Fields& fields, ParseError& error) {
  Cursor at{bytes.data(), bytes.data(), bytes.data() + bytes.size()};
  const ParseStatus status = bytes.size() > limits.head_bytes_max
                                 ? at.bad(ParseReason::kHeadTooLarge)
                                 : parse_field_lines(at, limits, fields, true);
  if (status == ParseStatus::kComplete) return true;
  error = {400, status == ParseStatus::kBad ? at.reason : ParseReason::kNoColon};
  return false;
}

}  // namespace encore::http
