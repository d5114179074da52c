// Responses: as requests (request_fuzz.cc, with its list of known differences), and their stored
// forms can be read back, freshened and answered from. The first byte is the size of the reads.
//
// Further differences: Beast takes status codes below 100, and refuses a status line that ends
// right behind the code, which we take as one with an empty phrase. It refuses an unknown transfer
// coding, with which ours runs to the close, and a malformed one where there is no body, whose
// fields of framing ours does not read.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "proxy/http/conditional.h"
#include "proxy/http/framing.h"
#include "proxy/http/parser.h"
#include "proxy/http/range.h"
#include "proxy/http/reuse.h"
#include "proxy/http/stored_head.h"
#include "proxy/http/storing.h"
#include "proxy/http/targeted.h"
#include "proxy/http/vary.h"
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
    case ParseReason::kHeadTooLarge:
    case ParseReason::kTooManyFields:
    case ParseReason::kBadStatusLine:
      return true;
    default:
      return false;
  }
}

constexpr auto kParse = [](std::string_view bytes, const Limits& limits, ParseProgress& progress,
                           ResponseHead& head, ParseError& error) {
  return parse_response(bytes, limits, progress, head, error);
};

void compare(std::string_view bytes, ParseStatus status, const ResponseHead& head,
             const ParseError& error) {
  const oracle::Head other = oracle::parse_response(bytes);
  if (is_settled(status, error, other, is_known_difference(error.reason))) return;
  const Framing framing = response_framing(Method::kGet, head);
  if (other.status == oracle::Status::kBad) {
    const bool newer = other.error == "bad version" && head.version == Version::kHttp11;
    const bool short_line = other.error == "bad status" || other.error == "bad reason";
    const bool coding = other.error == "bad Transfer-Encoding" && framing.kind == BodyKind::kNone;
    const bool list = other.error == "bad value" && head.fields.has_any(kReadByBeast);
    ENCORE_CHECK(newer || list || coding || framing.kind == BodyKind::kError ||
                     (short_line && head.reason.empty()),
                 other.error);
    return;
  }
  ENCORE_CHECK(other.status == oracle::Status::kComplete, "both are complete");
  ENCORE_CHECK(other.code == head.status, "one status");
  ENCORE_CHECK(other.reason == head.reason, "one phrase");
  ENCORE_CHECK(other.head_size == head.head_size, "one length");
  compare_fields(other, head.fields);
  if (framing.kind == BodyKind::kChunked) ENCORE_CHECK(other.chunked, "one framing");
  if (framing.kind == BodyKind::kLength) {
    ENCORE_CHECK(other.content_length == framing.length, "one length");
  }
}

const Exchange kExchange{.response_wall = WallTime(std::chrono::seconds(1'790'000'000)),
                         .response_time = MonotonicTime(std::chrono::hours(1)),
                         .request_time = MonotonicTime(std::chrono::minutes(59))};

void apply_rules(const ResponseHead& head) {
  static constexpr std::string_view kRequest = "GET http://h/a HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::vector<std::string> targets = {"cdn-cache-control"};
  RequestHead request;
  ParseError error;
  parse_request(kRequest, {}, request, error);
  Target target;
  resolve_target(request, Scheme::kHttp, target);
  const UnixSeconds arrival = to_unix(kExchange.response_wall);
  const ResponseDirectives directives = effective_directives(head.fields, targets);
  const StoreDecision decision = may_store(request, target, {}, head, directives, arrival, {});
  StoredMeta meta = make_stored_meta(head, directives, decision.lifetime, kExchange);
  std::string stored;
  build_stored_head(head, directives, 10, arrival, {.strip_tags = true}, stored, meta);
  ResponseHead back;
  read_stored_head(stored, back);
  ENCORE_CHECK(back.status == head.status && meta.head_bytes == stored.size(), "reads back");
  ENCORE_CHECK(!back.fields.has_any({FieldId::kConnection, FieldId::kTransferEncoding}), "no hop");
  const Validators validators = stored_validators(meta, stored);
  ENCORE_CHECK(validators.etag.size() == meta.etag_bytes, "the entity tag lies inside");
  for (const auto seconds : {-5, 0, 10, 100'000}) {
    const MonotonicTime now = kExchange.response_time + std::chrono::seconds(seconds);
    const ReuseDecision reuse = decide_reuse(meta, {}, now, {});
    ENCORE_CHECK((reuse.action == Reuse::kFresh) == is_fresh(meta, now), "one freshness");
    static_cast<void>(may_serve_stale(meta, {}, now, OriginFailure::kUnreachable, {}));
  }
  // The response as a 304 to itself, and a 304 made of it.
  std::string fresh;
  const VaryOptions vary;
  const Freshened again = freshen(stored, head,
                                  {.request = request,
                                   .target = target,
                                   .directives = {},
                                   .targets = targets,
                                   .vary = vary,
                                   .exchange = kExchange},
                                  {}, {}, fresh);
  ENCORE_CHECK(again.meta.head_bytes == fresh.size(), "the freshened head has its length");
  read_stored_head(fresh, back);
  build_not_modified(back, stored);
  read_stored_head(stored, back);
  static_cast<void>(partial_content(head));
  const std::string names = selecting_names(head.fields);
  std::string key;
  if (names != "*") write_variant_key(names, request.fields, {}, key);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t step = data[0] % 64 + 1;
  const std::vector<char> copy(data + 1, data + size);
  const std::string_view bytes(copy.data(), copy.size());
  ResponseHead head;
  ParseError error;
  const ParseStatus status = parse_response(bytes, kLimits, head, error);
  if (status == ParseStatus::kBad) ENCORE_CHECK(error.status == 502, "a bad gateway");
  check_cut<ResponseHead>(bytes, step, status, kParse);
  compare(bytes, status, head, error);
  if (status == ParseStatus::kComplete) apply_rules(head);
  return 0;
}
