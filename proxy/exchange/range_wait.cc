#include "proxy/exchange/range_wait.h"

#include <algorithm>

#include "base/check.h"
#include "proxy/http/message.h"
#include "proxy/http/stored_head.h"

namespace encore::server {
namespace {

// A transfer that is not stored stops for a reader that is further behind than this.
std::uint64_t held_bytes_max(const config::Config& config) {
  return std::min(config.cache.collapse_buffer_bytes, config.limits.transfer_buffer_bytes);
}

bool serves_ranges(std::string_view response_head) {
  http::ResponseHead head;
  http::read_stored_head(response_head, head);
  return head.fields.list_has(http::FieldId::kAcceptRanges, "bytes");
}

}  // namespace

void RangeWait::begin(const http::RangeNeed& needed, const Waiter& waiter) {
  since_ = waiter.now;
  state_ = State::kHolds;
  const std::uint64_t held_max = held_bytes_max(waiter.config);
  if (needed.to_end || needed.begin < held_max || needed.end - needed.begin > held_max) return;
  // A range that fits the buffer and begins behind it needs nothing of what lies before
  // (docs/decisions/0335).
  state_ = State::kPasses;
  const bool opened = waiter.content.set_body(waiter.transfer.body());
  ENCORE_CHECK(opened, "a body is kept until its readers have opened it");
  waiter.transfer.mark_opened(waiter.reader);
}

RangeWait::Next RangeWait::look(const http::RangeNeed& needed, const Waiter& waiter) {
  ENCORE_CHECK(may_wait(), "who has given up does not wait again");
  if (!has_begun()) begin(needed, waiter);
  if (state_ == State::kPasses) {
    waiter.content.pass_over(needed.begin);
    waiter.transfer.advance(waiter.reader, waiter.content.position());
  }
  const store::Body& body = *waiter.transfer.body();
  if (body.state() == store::BodyState::kAborted && (needed.to_end || body.size() < needed.end)) {
    state_ = State::kOver;
    return Next::kBroken;
  }
  const bool is_urged = state_ == State::kHolds && waiter.transfer.are_readers_urged();
  if (!is_urged && !is_impatient_) return Next::kWait;
  return give_up(needed, waiter.transfer.response());
}

bool RangeWait::has_timed_out(Nanoseconds limit, MonotonicTime now) {
  const bool is_under_way = state_ == State::kHolds || state_ == State::kPasses;
  is_impatient_ = is_under_way && limit.count() != 0 && now - since_ >= limit;
  return is_impatient_;
}

RangeWait::Next RangeWait::give_up(const http::RangeNeed& needed, const SharedResponse& response) {
  const bool has_passed = state_ == State::kPasses;
  state_ = State::kOver;
  // With a known length the beginning is not waited for, whatever else is asked for.
  const bool is_at_beginning = !response.length && needed.begin == 0 && !needed.to_end;
  return has_passed || (!is_at_beginning && serves_ranges(response.head)) ? Next::kPart
                                                                          : Next::kWhole;
}

}  // namespace encore::server
