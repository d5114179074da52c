// The part of a fetch that hears of its stream where its origin speaks HTTP/2.
#include <utility>

#include "proxy/observe/request_steps.h"
#include "proxy/origin/fetch.h"

namespace encore::server {

namespace {

using AttemptFailure = OriginLink::AttemptFailure;

AttemptFailure failure_of(StreamFailure::Kind kind) {
  switch (kind) {
    case StreamFailure::Kind::kRefused:
      return AttemptFailure::kRefused;
    case StreamFailure::Kind::kReset:
      return AttemptFailure::kReset;
    case StreamFailure::Kind::kInvalid:
    case StreamFailure::Kind::kLost:
      break;
  }
  return AttemptFailure::kClosed;
}

}  // namespace

void Fetch::on_stream_writable() {
  const PanicNote note(state_.activity());
  if (state_ != State::kEnded && state_ != State::kConnecting) flush_what_waited();
}

void Fetch::on_stream_failed(const StreamFailure& failure) {
  const PanicNote note(state_.activity());
  // The response cannot be passed on any more: the next connection checks the name again.
  if (name_check_ != nullptr) return name_check_->give_up();
  if (failure.kind == StreamFailure::Kind::kInvalid) {
    if (request_->runtime->follows_requests) [[unlikely]] {
      log_step(request_->request_id, {"fetch: refuses what came: ", failure.why});
    }
    fail({502, Outcome::kOriginInvalid, "bad-http2"});
    return;
  }
  if (try_again(failure_of(failure.kind), failure.why)) return;
  switch (failure.kind) {
    case StreamFailure::Kind::kRefused:
      return fail({502, Outcome::kOriginAborted, "origin-refused-stream"});
    case StreamFailure::Kind::kReset:
      return fail({502, Outcome::kOriginAborted, "origin-stream-reset"});
    case StreamFailure::Kind::kInvalid:
    case StreamFailure::Kind::kLost:
      return fail({502, Outcome::kOriginAborted, "origin-" + std::string(failure.why)});
  }
}

}  // namespace encore::server
