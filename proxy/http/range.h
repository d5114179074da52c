// Ranges of bytes (RFC 9110 14), half-open inside. Pure, thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/message.h"

namespace encore::http {

// [begin, end) of a representation.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const noexcept { return end - begin; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

enum class RangeOutcome : std::uint8_t {
  kWhole,          // no range, malformed, another unit, too many or abusive: send 200
  kSatisfiable,    // 206 with the ranges
  kUnsatisfiable,  // 416 with "Content-Range: bytes */length"
};

struct RangeLimits {
  std::size_t ranges_max = 16;  // more than this, or more than two that overlap: the whole
};

// The Range that a request asks for: of a GET, in exactly one line (RFC 9110 14.2); else empty,
// and to be ignored.
std::string_view range_value(const RequestHead& request) noexcept;

// Resolves a Range value against a representation of `length` bytes into `ranges` (cleared first),
// in the order asked for, unsatisfiable ones left out.
RangeOutcome resolve_range(std::string_view value, std::uint64_t length, const RangeLimits& limits,
                           std::vector<ByteRange>& ranges);

// How much of a representation a Range value asks for, while the length is not known.
struct RangeNeed {
  std::uint64_t begin = 0;  // the least position that is asked for; 0 where that shows at the end
  std::uint64_t end = 0;    // beyond the greatest last position that is named
  bool to_end = false;  // a suffix, or a range without a last position: the length must be known
  friend bool operator==(const RangeNeed&, const RangeNeed&) = default;
};
// Nothing where the whole answers it, whatever the length: as kWhole, for "bytes=0-", and for
// ranges that go back. Once `end` bytes are there, or the length is known, resolve_range() answers
// for good.
std::optional<RangeNeed> needed_for_range(std::string_view value, const RangeLimits& limits);

// Content-Range: bytes first-last/length, or bytes */length.
struct ContentRange {
  std::optional<ByteRange> range;       // nothing: "*"
  std::optional<std::uint64_t> length;  // nothing: "*"
};
// Nothing if malformed, of another unit, or contradicting itself.
std::optional<ContentRange> parse_content_range(std::string_view value) noexcept;

// "bytes 0-99/1234", or "bytes 0-99/*" where the length is not known (RFC 9110 14.4)
std::string content_range(const ByteRange& range, std::optional<std::uint64_t> length);
// "bytes */1234"
std::string unsatisfied_content_range(std::uint64_t length);

// multipart/byteranges (RFC 9110 14.6): the text in front of a part, including the CRLF that ends
// the part before; the text after the last; the length of it all.
std::string part_head(std::string_view boundary, std::string_view content_type,
                      const ByteRange& range, std::optional<std::uint64_t> length);
std::string multipart_end(std::string_view boundary);
std::uint64_t multipart_bytes(std::string_view boundary, std::string_view content_type,
                              const std::vector<ByteRange>& ranges,
                              std::optional<std::uint64_t> length);

// Returns the range of a 206: one part whose place and whole length are known and agree with
// Content-Length. Nothing for multipart, and for a wrong or missing Content-Range.
std::optional<ContentRange> partial_content(const ResponseHead& response) noexcept;

// True if a 206 answers this request: its range lies within what was asked for. REQUIRES: a Range
// of one range.
bool answers_range(const ContentRange& content, std::string_view range_value) noexcept;

struct Validators;
// True if two parts may be joined (RFC 9110 15.3.7.3): same strong validator, same length, and
// they touch or overlap.
bool may_combine(const ByteRange& a, const Validators& a_validators, std::uint64_t a_length,
                 const ByteRange& b, const Validators& b_validators,
                 std::uint64_t b_length) noexcept;

}  // namespace encore::http
