#include "proxy/exchange/response_plan.h"

#include <fmt/core.h>
#include <sys/random.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/recycled.h"
#include "proxy/http/conditional.h"
#include "proxy/http/head_text.h"
#include "proxy/http/head_writer.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/reply_text.h"
#include "proxy/http/stored_head.h"

namespace encore::server {
namespace {

using Content = ResponsePlan::Content;
using Framing = ClientStream::Framing;

constexpr http::RangeLimits kRangeLimits;

// Usual bytes of our own fields, and of those that frame the response.
constexpr std::size_t kOwnFieldsBytes = 384;

// 128 random bits: nobody can put it into a body beforehand, and it tells nothing of ours.
std::string make_boundary() {
  std::array<std::uint64_t, 2> bits{};
  const ssize_t got = ::getrandom(bits.data(), sizeof(bits), 0);
  // The system never interrupts it for up to 256 bytes.
  ENCORE_CHECK(got == static_cast<ssize_t>(sizeof(bits)), "the system has random bytes");
  return fmt::format("encore-{:016x}{:016x}", bits[0], bits[1]);
}

bool is_get(const ResponseMoment& moment) {
  return moment.request.head.method == http::Method::kGet;
}
bool is_head(const ResponseMoment& moment) {
  return moment.request.head.method == http::Method::kHead;
}

// The fields that we add to each response but its framing.
void write_own_fields(const ResponseSource& source, const ResponseMoment& moment,
                      http::HeadWriter& out) {
  out.text(source.more_fields);
  if (source.has_age) out.field("Age", http::current_age(*source.meta, moment.now));
  const RequestContext& request = moment.request;
  out.text(request.via_field(http::Version::kHttp11));
  if (!request.runtime->config.cache.cache_status_key || request.key.empty()) {
    http::write_cache_status(moment.cache_status, out);
    return;
  }
  http::CacheStatus status = moment.cache_status;
  // The part of the key that a rule adds is not shown (Rule::apart()).
  const std::string_view key = std::string_view(request.key).substr(kRealmBytes);
  status.key = key.substr(0, key.find('#'));
  http::write_cache_status(status, out);
}

// 304 and 412, which the client's conditions ask for.
std::optional<ResponsePlan> plan_condition(const ResponseSource& source,
                                           const ResponseMoment& moment) {
  const auto condition = http::evaluate_conditions(
      moment.request.head, http::stored_validators(*source.meta, source.head), source.meta->status,
      http::to_unix(moment.wall));
  if (condition == http::Condition::kSend) return std::nullopt;
  ResponsePlan plan;
  plan.content = Content::kUnread;
  if (condition == http::Condition::kNotModified) {
    http::ResponseHead stored;
    http::read_stored_head(source.head, stored);
    http::build_not_modified(stored, plan.head);
    plan.status = 304;
  } else {
    http::append_status_line(412, "Precondition Failed", plan.head);
    http::append_field("Date", moment.http_date, plan.head);
    plan.head += "Content-Length: 0\r\n";
    plan.status = 412;
  }
  append_own_fields(source, moment, plan.head);
  return plan;
}

ResponsePlan plan_unsatisfiable(const ResponseSource& source, const ResponseMoment& moment,
                                const http::ResponseHead& stored, std::uint64_t length) {
  ResponsePlan plan;
  plan.status = 416;
  plan.content = Content::kUnread;
  http::build_unsatisfiable_head(stored, length, plan.head);
  ResponseSource told = source;
  told.more_fields = {};  // it says nothing of the representation but its length
  append_own_fields(told, moment, plan.head);
  return plan;
}

void add_parts(const http::ResponseHead& stored, std::optional<std::uint64_t> length,
               const std::vector<http::ByteRange>& ranges, ResponsePlan& plan) {
  if (ranges.size() == 1) {
    http::build_partial_head(stored, ranges[0], length, plan.head);
    plan.parts.push_back({.text = {}, .range = ranges[0]});
    return;
  }
  const std::string_view type = stored.fields.value(http::FieldId::kContentType);
  const std::string boundary = make_boundary();
  http::build_multipart_head(stored, boundary,
                             http::multipart_bytes(boundary, type, ranges, length), plan.head);
  for (const http::ByteRange& range : ranges) {
    plan.parts.push_back({http::part_head(boundary, type, range, length), range});
  }
  plan.end = http::multipart_end(boundary);
}

// How long a representation is, and how much of it is there.
struct Extent {
  std::optional<std::uint64_t> length;
  std::uint64_t bytes = 0;
};

Extent extent_of(const ResponseSource& source) {
  if (source.length) return {source.length, *source.length};
  // The state is read before the size, which is final then.
  const store::BodyState state = source.body->state();
  const std::uint64_t bytes = source.body->size();
  if (state == store::BodyState::kComplete) return {bytes, bytes};
  return {std::nullopt, bytes};
}

// Plans 206 and 416, which the client's Range asks for; or says that this is not known yet.
std::optional<ResponsePlan> plan_ranges(const ResponseSource& source,
                                        const ResponseMoment& moment) {
  const std::string_view value = http::range_value(moment.request.head);
  if (value.empty() || (!source.length && !source.body)) return std::nullopt;
  if (!http::if_range_holds(moment.request.head, http::stored_validators(*source.meta, source.head),
                            http::to_unix(moment.wall))) {
    return std::nullopt;
  }
  const Extent extent = extent_of(source);
  if (!extent.length) {
    const auto needed = http::needed_for_range(value, kRangeLimits);
    if (!needed) return std::nullopt;
    if (needed->to_end || needed->end > extent.bytes) {
      if (!source.may_wait) return std::nullopt;
      ResponsePlan later;
      later.content = Content::kLater;
      later.needed = *needed;
      return later;
    }
  }
  std::vector<http::ByteRange> ranges;
  const auto outcome = http::resolve_range(value, extent.bytes, kRangeLimits, ranges);
  if (outcome == http::RangeOutcome::kWhole) return std::nullopt;
  http::ResponseHead stored;
  http::read_stored_head(source.head, stored);
  if (outcome == http::RangeOutcome::kUnsatisfiable) {
    return plan_unsatisfiable(source, moment, stored, extent.bytes);
  }
  const auto goes_back = [](const http::ByteRange& a, const http::ByteRange& b) {
    return b.begin < a.end;
  };
  const bool ascending = std::ranges::adjacent_find(ranges, goes_back) == ranges.end();
  const bool grows = source.body && source.body->state() == store::BodyState::kGrowing;
  if (!ascending && (grows || source.on_disk)) {
    return std::nullopt;  // parts that go back need the whole body first: send all of it
  }
  // The head would promise what is far away. Another way to it is open until it is sent
  // (docs/decisions/0405).
  const std::uint64_t needed_bytes = ranges.back().begin + 1;
  if (grows && source.may_wait && is_get(moment) && needed_bytes > source.body->size() &&
      stored.fields.list_has(http::FieldId::kAcceptRanges, "bytes")) {
    ResponsePlan later;
    later.content = Content::kLater;
    later.needed = {.begin = ranges.front().begin, .end = needed_bytes};
    return later;
  }
  ResponsePlan plan;
  plan.status = 206;
  plan.framing = Framing::kLength;
  plan.content = Content::kParts;
  add_parts(stored, extent.length, ranges, plan);
  append_own_fields(source, moment, plan.head);
  return plan;
}

// A stored body with its trailer section behind it, which needs a form that can carry one.
ResponsePlan plan_with_trailers(const ResponseSource& source, const ResponseMoment& moment) {
  ResponsePlan plan;
  plan.status = source.meta->status;
  plan.framing = Framing::kOpen;
  plan.content = *source.length == 0 ? Content::kNone : Content::kWhole;
  plan.trailers = source.stored_trailers;
  http::copy_head_without(source.head, {http::FieldId::kContentLength}, plan.head);
  append_own_fields(source, moment, plan.head);
  return plan;
}

ResponsePlan plan_whole(const ResponseSource& source, const ResponseMoment& moment) {
  ResponsePlan plan;
  plan.status = source.meta->status;
  plan.head = take_text();
  {
    http::HeadWriter head(plan.head, source.head.size() + kOwnFieldsBytes);
    head.text(source.head);
    write_own_fields(source, moment, head);
  }
  const bool has_content = !is_head(moment) && plan.status != 204 && plan.status != 304;
  if (has_content && (source.coding || (!source.length && source.body))) {
    plan.framing = Framing::kOpen;
    plan.content = Content::kRest;
    plan.trailers = source.stored_trailers;
  } else if (has_content && source.length && *source.length != 0) {
    plan.framing = Framing::kLength;
    plan.content = Content::kWhole;
  } else if (is_head(moment)) {
    plan.content = Content::kUnread;
  }
  return plan;
}

}  // namespace

void append_own_fields(const ResponseSource& source, const ResponseMoment& moment,
                       std::string& head) {
  http::HeadWriter out(head, kOwnFieldsBytes);
  write_own_fields(source, moment, out);
}

ResponsePlan plan_response(const ResponseSource& source, const ResponseMoment& moment) {
  const bool may_cut =
      source.whole && source.meta->status == 200 && (is_get(moment) || is_head(moment));
  if (may_cut) {
    if (auto plan = plan_condition(source, moment)) return *std::move(plan);
    if (source.has_ranges) {
      if (auto plan = plan_ranges(source, moment)) return *std::move(plan);
    }
  }
  if (!source.stored_trailers.empty() && is_get(moment) && source.length && !source.coding &&
      http::accepts_trailers(moment.request.head)) {
    return plan_with_trailers(source, moment);
  }
  return plan_whole(source, moment);
}

ResponsePlan plan_stored_part(const ResponseSource& source, const ResponseMoment& moment,
                              const http::ContentRange& stored, const http::ByteRange& range) {
  ENCORE_CHECK(stored.range && stored.length && range.begin >= stored.range->begin &&
                   range.end <= stored.range->end,
               "a range of a stored part lies within it");
  http::ResponseHead head;
  http::read_stored_head(source.head, head);
  ResponsePlan plan;
  plan.status = 206;
  plan.framing = Framing::kLength;
  plan.content = Content::kParts;
  http::build_partial_head(head, range, stored.length, plan.head);
  const std::uint64_t begin = stored.range->begin;
  plan.parts.push_back({.text = {}, .range = {range.begin - begin, range.end - begin}});
  append_own_fields(source, moment, plan.head);
  return plan;
}

ResponseMoment moment_of(const RequestContext& request, const http::CacheStatus& cache_status,
                         net::Loop& loop) {
  return {.request = request,
          .cache_status = cache_status,
          .now = loop.now(),
          .wall = loop.wall_now(),
          .http_date = loop.http_date()};
}

}  // namespace encore::server
