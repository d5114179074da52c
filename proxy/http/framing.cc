#include "proxy/http/framing.h"

#include <algorithm>
#include <limits>

namespace encore::http {
namespace {

constexpr std::uint64_t kLengthMax =
    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

Framing refused(std::uint16_t status, FramingReason reason) noexcept {
  return {.kind = BodyKind::kError, .status = status, .reason = reason, .reusable = false};
}

// REQUIRES: Content-Length is there.
Framing by_length(const Fields& fields, std::uint16_t error_status) noexcept {
  const Field* const first = fields.find(FieldId::kContentLength);
  const bool repeated = std::any_of(first + 1, fields.end(), [](const Field& field) {
    return field.id == FieldId::kContentLength;
  });
  if (repeated) return refused(error_status, FramingReason::kRepeatedLength);
  const std::string_view text = first->value;
  std::uint64_t length = 0;
  if (!parse_decimal(text, length)) {
    if (text.find(',') != std::string_view::npos) {
      return refused(error_status, FramingReason::kRepeatedLength);
    }
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
    return refused(error_status,
                   digits ? FramingReason::kLengthTooLarge : FramingReason::kBadLength);
  }
  return {.kind = BodyKind::kLength, .length = length};
}

enum class Codings : std::uint8_t {
  kChunked,    // one line with that alone
  kUnknown,    // others, chunked at most once and last
  kNotLast,    // chunked with others behind it
  kMalformed,  // chunked twice, empty members or lines, what is no token
};

Codings transfer_codings(const Fields& fields) noexcept {
  const std::size_t lines = fields.count(FieldId::kTransferEncoding);
  if (lines == 1 && equals_lower(fields.value(FieldId::kTransferEncoding), "chunked")) {
    return Codings::kChunked;
  }
  bool chunked = false;
  bool unknown = false;
  bool not_last = false;
  bool malformed = false;
  fields.for_each_member(FieldId::kTransferEncoding, [&](std::string_view member) {
    not_last = not_last || chunked;
    if (equals_lower(member, "chunked")) {
      malformed = malformed || chunked;
      chunked = true;
    } else {
      malformed = malformed || !is_token(trim_ows(member.substr(0, member.find(';'))));
      unknown = true;
    }
  });
  if (malformed || !unknown) return Codings::kMalformed;
  return not_last ? Codings::kNotLast : Codings::kUnknown;
}

bool has_no_body(Method method, unsigned status) noexcept {
  return method == Method::kHead || status < 200 || status == 204 || status == 304 ||
         (method == Method::kConnect && status < 300);
}

}  // namespace

bool parse_decimal(std::string_view text, std::uint64_t& value) noexcept {
  if (text.empty()) return false;
  std::uint64_t sum = 0;
  for (const char c : text) {
    if (!is_digit(c)) return false;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (sum > (kLengthMax - digit) / 10) return false;
    sum = sum * 10 + digit;
  }
  value = sum;
  return true;
}

Framing request_framing(const RequestHead& head) noexcept {
  const Fields& fields = head.fields;
  const bool has_length = fields.has(FieldId::kContentLength);
  if (!fields.has(FieldId::kTransferEncoding)) {
    if (has_length) return by_length(fields, 400);
    return {};
  }
  if (has_length) return refused(400, FramingReason::kLengthAndTransferEncoding);
  if (head.version == Version::kHttp10) return refused(400, FramingReason::kTransferEncodingIn10);
  switch (transfer_codings(fields)) {
    case Codings::kChunked:
      return {.kind = BodyKind::kChunked};
    case Codings::kUnknown:
      return refused(501, FramingReason::kUnknownCoding);
    case Codings::kNotLast:
    case Codings::kMalformed:
      break;
  }
  return refused(400, FramingReason::kBadTransferEncoding);
}

Framing response_framing(Method method, const ResponseHead& head) noexcept {
  const Fields& fields = head.fields;
  const bool has_length = fields.has(FieldId::kContentLength);
  const bool has_coding = fields.has(FieldId::kTransferEncoding);
  if (has_length && has_coding) return refused(502, FramingReason::kLengthAndTransferEncoding);
  if (has_coding && head.version == Version::kHttp10) {
    return refused(502, FramingReason::kTransferEncodingIn10);
  }
  Framing framing = {.kind = BodyKind::kUntilClose, .reusable = false};
  if (has_length) framing = by_length(fields, 502);
  if (framing.kind == BodyKind::kError) return framing;
  if (has_no_body(method, head.status)) {
    // These have no content with a length, so a head that states one is out of step.
    const bool odd = (head.status < 200 || head.status == 204) &&
                     (has_coding || (has_length && framing.length != 0));
    return {.reusable = !odd};
  }
  if (!has_coding) return framing;
  switch (transfer_codings(fields)) {
    case Codings::kChunked:
      return {.kind = BodyKind::kChunked};
    case Codings::kUnknown:
    case Codings::kNotLast:
      return refused(502, FramingReason::kUnknownCoding);
    case Codings::kMalformed:
      break;
  }
  return refused(502, FramingReason::kBadTransferEncoding);
}

}  // namespace encore::http
