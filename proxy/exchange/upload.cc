#include "proxy/exchange/upload.h"

#include "base/check.h"
#include "proxy/exchange/decide.h"

namespace encore::server {
namespace {

// Over which the pace is measured where a pause may take any time.
constexpr Nanoseconds kStretch = std::chrono::minutes(1);

}  // namespace

Upload::Upload(const RequestContext& request, MonotonicTime now)
    : request_(request), activity_(now) {
  if (!has_content(request)) return;
  state_ = request.framing.kind == http::BodyKind::kLength ? State::kLength : State::kOpen;
}

Upload::UploadProgress Upload::take(std::uint64_t bytes, MonotonicTime now) {
  ENCORE_CHECK(!is_done(), "nothing comes behind the end of a request's content");
  activity_ = now;
  bytes_ += bytes;
  if (state_ == State::kLength) {
    const std::uint64_t length = request_.framing.length;
    ENCORE_CHECK(bytes_ <= length, "no more comes of a request than was announced");
    if (bytes_ == length) state_ = State::kDone;
    return is_done() ? UploadProgress::kLast : UploadProgress::kMore;
  }
  const std::uint64_t limit = request_.runtime->config.limits.request_body_bytes;
  return limit != 0 && bytes_ > limit ? UploadProgress::kTooLarge : UploadProgress::kMore;
}

void Upload::end() {
  ENCORE_CHECK(state_ == State::kOpen, "content of no announced length ends once");
  state_ = State::kDone;
}

void Upload::restart(MonotonicTime now) {
  activity_ = now;
  stretch_since_ = {};
}

Upload::Pace Upload::look(MonotonicTime now) {
  const Nanoseconds limit = request_.runtime->config.timeouts.client_body;
  if (limit.count() != 0 && now - activity_ >= limit) return Pace::kSilent;
  return is_slow(now) ? Pace::kSlow : Pace::kGood;
}

bool Upload::is_slow(MonotonicTime now) {
  if (stretch_since_ == MonotonicTime{}) {
    stretch_since_ = now;
    stretch_from_ = bytes_;
    return false;
  }
  const config::Config& config = request_.runtime->config;
  const Nanoseconds stretch =
      config.timeouts.client_body.count() != 0 ? config.timeouts.client_body : kStretch;
  const Nanoseconds elapsed = now - stretch_since_;
  if (elapsed < stretch) return false;
  const double least = static_cast<double>(config.limits.client_body_rate_min) *
                       std::chrono::duration<double>(elapsed).count();
  const bool slow = static_cast<double>(bytes_ - stretch_from_) < least;
  stretch_since_ = now;
  stretch_from_ = bytes_;
  return slow;
}

}  // namespace encore::server
