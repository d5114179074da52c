#include "proxy/http/range.h"

#include <algorithm>
#include <limits>

#include "proxy/http/conditional.h"
#include "proxy/http/framing.h"

namespace encore::http {
namespace {

constexpr std::uint64_t kPositionMax =
    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

// Digits, saturated. Nothing if it is not digits.
std::optional<std::uint64_t> position(std::string_view text) noexcept {
  std::uint64_t value = 0;
  if (parse_decimal(text, value)) return value;
  const bool digits = !text.empty() && std::ranges::all_of(text, is_digit);
  return digits ? std::optional(kPositionMax) : std::nullopt;
}

enum class SpecStatus : std::uint8_t { kMalformed, kUnsatisfiable, kOk };

// One of "0-99", "100-", "-5" against the length.
SpecStatus resolve_spec(std::string_view spec, std::uint64_t length, ByteRange& range) noexcept {
  const std::size_t dash = spec.find('-');
  if (dash == std::string_view::npos) return SpecStatus::kMalformed;
  const std::string_view tail = spec.substr(dash + 1);
  const auto last = position(tail);
  if (dash == 0) {
    if (!last) return SpecStatus::kMalformed;
    range = {length - std::min(*last, length), length};
    return range.size() > 0 ? SpecStatus::kOk : SpecStatus::kUnsatisfiable;
  }
  const auto first = position(spec.substr(0, dash));
  if (!first || (!tail.empty() && (!last || *last < *first))) return SpecStatus::kMalformed;
  if (*first >= length) return SpecStatus::kUnsatisfiable;
  range = {*first, tail.empty() ? length : std::min(*last, length - 1) + 1};
  return SpecStatus::kOk;
}

// More than two that overlap are not asked for in earnest (RFC 9110 14.2).
bool is_abusive(std::vector<ByteRange> ranges) {
  std::ranges::sort(ranges, {}, &ByteRange::begin);
  std::size_t overlaps = 0;
  std::uint64_t reach = 0;
  for (const ByteRange& range : ranges) {
    if (range.begin < reach) ++overlaps;
    reach = std::max(reach, range.end);
  }
  return overlaps >= 2;
}

// The text behind "bytes" and, in Range, '='.
std::optional<std::string_view> after_unit(std::string_view value, char separator) noexcept {
  constexpr std::string_view kUnit = "bytes";
  if (value.size() <= kUnit.size() || !equals_lower(value.substr(0, kUnit.size()), kUnit) ||
      value[kUnit.size()] != separator) {
    return std::nullopt;
  }
  return value.substr(kUnit.size() + 1);
}

}  // namespace

std::string_view range_value(const RequestHead& request) noexcept {
  if (!request.fields.has(FieldId::kRange) || request.method != Method::kGet) return {};
  return request.fields.count(FieldId::kRange) == 1 ? request.fields.value(FieldId::kRange)
                                                    : std::string_view{};
}

RangeOutcome resolve_range(std::string_view value, std::uint64_t length, const RangeLimits& limits,
                           std::vector<ByteRange>& ranges) {
  ranges.clear();
  const auto set = after_unit(value, '=');
  if (!set) return RangeOutcome::kWhole;
  ListReader reader(*set);
  std::string_view spec;
  std::size_t specs = 0;
  while (reader.next(spec)) {
    if (++specs > limits.ranges_max) return RangeOutcome::kWhole;
    ByteRange range;
    const SpecStatus status = resolve_spec(spec, length, range);
    if (status == SpecStatus::kMalformed) return RangeOutcome::kWhole;
    if (status == SpecStatus::kOk) ranges.push_back(range);
  }
  if (specs == 0) return RangeOutcome::kWhole;
  if (ranges.empty()) return RangeOutcome::kUnsatisfiable;
  return is_abusive(ranges) ? RangeOutcome::kWhole : RangeOutcome::kSatisfiable;
}

std::optional<RangeNeed> needed_for_range(std::string_view value, const RangeLimits& limits) {
  const auto set = after_unit(value, '=');
  if (!set) return std::nullopt;
  ListReader reader(*set);
  std::string_view spec;
  std::size_t specs = 0;
  RangeNeed need;
  std::vector<ByteRange> ranges;  // but suffixes, whose place is not known
  bool has_suffix = false;
  while (reader.next(spec)) {
    if (++specs > limits.ranges_max) return std::nullopt;
    ByteRange range;
    const SpecStatus status = resolve_spec(spec, kPositionMax, range);
    if (status == SpecStatus::kMalformed) return std::nullopt;
    if (spec.starts_with('-')) {
      has_suffix = true;
    } else if (status == SpecStatus::kOk) {
      ranges.push_back(range);
    }
  }
  if (specs == 0 || is_abusive(ranges)) return std::nullopt;
  need.to_end = has_suffix || ranges.empty();
  need.begin = need.to_end ? 0 : kPositionMax;
  std::uint64_t reach = 0;
  for (const ByteRange& range : ranges) {
    const bool is_open = range.end == kPositionMax;
    if (range.begin < reach || (is_open && range.begin == 0)) return std::nullopt;
    reach = range.end;
    need.to_end = need.to_end || is_open;
    need.begin = std::min(need.begin, range.begin);
    if (!is_open) need.end = range.end;
  }
  return need;
}

std::optional<ContentRange> parse_content_range(std::string_view value) noexcept {
  const auto rest = after_unit(value, ' ');
  if (!rest) return std::nullopt;
  const std::size_t slash = rest->find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view span = rest->substr(0, slash);
  const std::string_view total = rest->substr(slash + 1);
  ContentRange result;
  std::uint64_t number = 0;
  if (total != "*") {
    if (!parse_decimal(total, number)) return std::nullopt;
    result.length = number;
  }
  if (span == "*") return result.length ? std::optional(result) : std::nullopt;
  const std::size_t dash = span.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  ByteRange range;
  if (!parse_decimal(span.substr(0, dash), range.begin) ||
      !parse_decimal(span.substr(dash + 1), number) || number < range.begin ||
      (result.length && number >= *result.length)) {
    return std::nullopt;
  }
  range.end = number + 1;
  result.range = range;
  return result;
}

std::string content_range(const ByteRange& range, std::optional<std::uint64_t> length) {
  return "bytes " + std::to_string(range.begin) + "-" + std::to_string(range.end - 1) + "/" +
         (length ? std::to_string(*length) : "*");
}

std::string unsatisfied_content_range(std::uint64_t length) {
  return "bytes */" + std::to_string(length);
}

std::string part_head(std::string_view boundary, std::string_view content_type,
                      const ByteRange& range, std::optional<std::uint64_t> length) {
  std::string head = "\r\n--";
  head += boundary;
  if (!content_type.empty()) {
    head += "\r\nContent-Type: ";
    head += content_type;
  }
  head += "\r\nContent-Range: ";
  head += content_range(range, length);
  head += "\r\n\r\n";
  return head;
}

std::string multipart_end(std::string_view boundary) {
  std::string end = "\r\n--";
  end += boundary;
  end += "--\r\n";
  return end;
}

std::uint64_t multipart_bytes(std::string_view boundary, std::string_view content_type,
                              const std::vector<ByteRange>& ranges,
                              std::optional<std::uint64_t> length) {
  std::uint64_t bytes = multipart_end(boundary).size();
  for (const ByteRange& range : ranges) {
    bytes += part_head(boundary, content_type, range, length).size() + range.size();
  }
  return bytes;
}

std::optional<ContentRange> partial_content(const ResponseHead& response) noexcept {
  const Fields& fields = response.fields;
  if (response.status != 206 || fields.count(FieldId::kContentRange) != 1) return std::nullopt;
  constexpr std::string_view kMultipart = "multipart/byteranges";
  if (equals_lower(fields.value(FieldId::kContentType).substr(0, kMultipart.size()), kMultipart)) {
    return std::nullopt;
  }
  const auto content = parse_content_range(fields.value(FieldId::kContentRange));
  if (!content || !content->range || !content->length) return std::nullopt;
  if (!fields.has(FieldId::kContentLength)) return content;
  std::uint64_t bytes = 0;
  const bool agrees = parse_decimal(fields.value(FieldId::kContentLength), bytes) &&
                      bytes == content->range->size();
  return agrees ? content : std::nullopt;
}

bool answers_range(const ContentRange& content, std::string_view range_value) noexcept {
  const auto set = after_unit(range_value, '=');
  if (!set || !content.range || !content.length) return false;
  ByteRange asked;
  return resolve_spec(trim_ows(*set), *content.length, asked) == SpecStatus::kOk &&
         content.range->begin >= asked.begin && content.range->end <= asked.end;
}

bool may_combine(const ByteRange& a, const Validators& a_validators, std::uint64_t a_length,
                 const ByteRange& b, const Validators& b_validators,
                 std::uint64_t b_length) noexcept {
  return a_length == b_length && strong_match(a_validators.etag, b_validators.etag) &&
         a.begin <= b.end && b.begin <= a.end;
}

}  // namespace encore::http
