// Requests: whatever the bytes, our parser agrees with Boost.Beast's where both accept, is the
// stricter where they differ, reaches the same end however the bytes are cut, and every rule that
// reads a request bears its result. The first byte is the size of the reads.
//
// Known differences, all of which make ours the stricter unless said otherwise:
//   - Beast unfolds obs-fold, and takes '#' and bytes above 0x7f in a target
//   - Beast takes white space in front of a field's line as obs-fold of nothing
//   - Beast has no limit on the number of fields, and ours on their bytes differ
//   - Beast refuses HTTP/1.2 and above, which we read as 1.1 (RFC 9110 2.5)
//   - Beast does not skip an empty line before the request
//   - Beast refuses a Connection that is no list of tokens, which only drops no field here
//   - Beast takes equal Content-Lengths and "gzip, chunked": here the framing decides, not the head
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "proxy/http/conditional.h"
#include "proxy/http/framing.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/interim.h"
#include "proxy/http/parser.h"
#include "proxy/http/range.h"
#include "proxy/http/uri.h"
#include "proxy/http/vary.h"
#include "proxy/http/via.h"
#include "tests/fuzz/beast_oracle.h"
#include "tests/fuzz/head_fuzz.h"

using namespace encore;
using namespace encore::http;
using namespace encore::fuzz;

namespace {

bool is_known_difference(ParseReason reason) {
  switch (reason) {
    case ParseReason::kObsFold:
    case ParseReason::kLeadingSpace:
    case ParseReason::kBadTarget:
    case ParseReason::kTargetTooLong:
    case ParseReason::kHeadTooLarge:
    case ParseReason::kTooManyFields:
      return true;
    default:
      return false;
  }
}

constexpr auto kParse = [](std::string_view bytes, const Limits& limits, ParseProgress& progress,
                           RequestHead& head, ParseError& error) {
  return parse_request(bytes, limits, progress, head, error);
};

void compare(std::string_view bytes, ParseStatus status, const RequestHead& head,
             const ParseError& error) {
  const std::string_view offered = bytes.starts_with("\r\n") ? bytes.substr(2) : bytes;
  const oracle::Head other = oracle::parse_request(offered);
  if (is_settled(status, error, other, is_known_difference(error.reason))) return;
  const Framing framing = request_framing(head);
  if (other.status == oracle::Status::kBad) {
    const bool newer = other.error == "bad version" && head.version == Version::kHttp11;
    const bool list = other.error == "bad value" && head.fields.has_any(kReadByBeast);
    ENCORE_CHECK(newer || list || framing.kind == BodyKind::kError, other.error);
    return;
  }
  ENCORE_CHECK(other.status == oracle::Status::kComplete, "both are complete");
  ENCORE_CHECK(other.method == head.method_text, "one method");
  ENCORE_CHECK(other.target == head.target, "one target");
  ENCORE_CHECK((other.version == 10) == (head.version == Version::kHttp10), "one version");
  ENCORE_CHECK(other.head_size + (bytes.size() - offered.size()) == head.head_size, "one length");
  compare_fields(other, head.fields);
  if (framing.kind == BodyKind::kError) return;
  ENCORE_CHECK(other.chunked == (framing.kind == BodyKind::kChunked), "one framing");
  ENCORE_CHECK(other.content_length.has_value() == (framing.kind == BodyKind::kLength),
               "a length in both");
  if (other.content_length) ENCORE_CHECK(*other.content_length == framing.length, "one length");
}

std::string key_of(const Target& target, const KeyOptions& options) {
  std::vector<char> key(key_bytes_max(target));
  return {key.data(), write_key(target, options, key).bytes};
}

void check_target(const RequestHead& head) {
  Target target;
  if (resolve_target(head, Scheme::kHttp, target) != TargetStatus::kOk) return;
  std::vector<char> host(target.authority.host.size() + 8);
  static_cast<void>(write_host(target, host));
  if (target.form == TargetForm::kAuthority || target.form == TargetForm::kAsterisk) return;
  const std::string key = key_of(target, {});
  ENCORE_CHECK(!origin_form(target, head.method, key).empty(), "something to ask for");
  static_cast<void>(key_of(target, {.sort_query = true, .drop_query = {"a*", "b"}}));
  if (target.authority.host.empty()) return;
  std::string storage;
  Target again;
  ENCORE_CHECK(resolve_reference(key, target, storage, again), "a key is a URI");
  ENCORE_CHECK(key_of(again, {}) == key, "a normalised key is its own");
  ENCORE_CHECK(same_origin(target, again), "and of the same origin");
}

void apply_rules(const RequestHead& head) {
  const Fields& fields = head.fields;
  check_target(head);
  static_cast<void>(parse_request_directives(fields));
  static_cast<void>(keep_alive(head));
  static_cast<void>(asked_upgrade(head));
  static_cast<void>(accepts_trailers(head));
  static_cast<void>(expectation(head));
  static_cast<void>(via_has(fields, "encore"));
  const HopByHop hops(fields);
  for (const Field& field : fields) {
    if (field.id == FieldId::kHost) ENCORE_CHECK(!hops.drops(field), "Host is kept");
    static_cast<void>(hops.drops(field));
  }
  std::string key;
  constexpr std::string_view kNames = "accept,accept-encoding,cache-control,cookie,foo,te";
  for (const bool on : {true, false}) {
    if (write_variant_key(kNames, fields, {.normalise_accept_encoding = on, .reverse = on}, key)) {
      ENCORE_CHECK(key.size() <= kNames.size() + 6 * (kSelectingBytesMax + 2 + 2 * 64),
                   "a variant key is bounded");
    }
  }
  const Validators stored{.etag = "\"a\"", .last_modified = 784111777, .date = 784111800};
  static_cast<void>(evaluate_conditions(head, stored, 200, 1'790'000'000));
  static_cast<void>(if_range_holds(head, stored, 1'790'000'000));
  std::vector<ByteRange> ranges;
  for (const std::uint64_t length : {0U, 1U, 1000U}) {
    const auto outcome = resolve_range(fields.value(FieldId::kRange), length, {}, ranges);
    if (outcome != RangeOutcome::kSatisfiable) continue;
    for (const ByteRange& range : ranges) {
      ENCORE_CHECK(range.begin < range.end && range.end <= length, "a range lies inside");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t step = data[0] % 64 + 1;
  // A copy of its own size, so that the sanitizer sees a byte read past its end.
  const std::vector<char> copy(data + 1, data + size);
  const std::string_view bytes(copy.data(), copy.size());
  RequestHead head;
  ParseError error;
  const ParseStatus status = parse_request(bytes, kLimits, head, error);
  check_cut<RequestHead>(bytes, step, status, kParse);
  compare(bytes, status, head, error);
  if (status != ParseStatus::kComplete) return 0;
  ENCORE_CHECK(head.head_size <= bytes.size() && inside(head.target, bytes), "views point inside");
  for (const Field& field : head.fields) {
    ENCORE_CHECK(inside(field.name, bytes) && inside(field.value, bytes), "views point inside");
  }
  apply_rules(head);
  return 0;
}
