#include "proxy/client/http2_stream.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace encore::server {
namespace {

h2::ServerSession::Framing framing_of(ClientStream::Framing framing) {
  switch (framing) {
    case ClientStream::Framing::kNone:
      return h2::ServerSession::Framing::kNone;
    case ClientStream::Framing::kLength:
      return h2::ServerSession::Framing::kLength;
    case ClientStream::Framing::kOpen:
      break;
  }
  return h2::ServerSession::Framing::kOpen;
}

}  // namespace

Http2Stream::Http2Stream(Http2Carrier& carrier, h2::StreamId id,
                         std::shared_ptr<const RequestContext> request, CacheView found,
                         ClientCounter::Seat seat)
    : Http2Responder(carrier, id),
      request_(std::move(request)),
      seat_(std::move(seat)),
      exchange_(carrier.services().exchange, *this, request_, std::move(found)) {}

// --- the request's content ---

std::size_t Http2Stream::give(std::string_view bytes) {
  if (state_ == State::kEnded) return bytes.size();
  if (awaits_protocol()) return 0;
  switch (exchange_.content_demand()) {
    case Exchange::ContentDemand::kLater:
      return 0;
    case Exchange::ContentDemand::kNever:
      break;
    case Exchange::ContentDemand::kNow:
      exchange_.on_content(bytes);
      break;
  }
  if (state_ != State::kEnded) session().consume(id_, bytes.size());
  return bytes.size();
}

void Http2Stream::on_content(h2::StreamId, std::string_view bytes) {
  if (kept_.empty()) bytes.remove_prefix(give(bytes));
  kept_ += bytes;
}

void Http2Stream::on_content_end(h2::StreamId, std::string_view trailers) {
  ENCORE_CHECK(request_content_ == Content::kComing, "content ends once");
  request_content_ = Content::kEnded;
  trailers_ = trailers;
  if (kept_.empty()) tell_end();
}

void Http2Stream::tell_end() {
  if (state_ == State::kEnded || request_content_ != Content::kEnded) return;
  if (request_->asks_upgrade()) return;  // its head is all of it
  switch (exchange_.content_demand()) {
    case Exchange::ContentDemand::kLater:
      return;
    case Exchange::ContentDemand::kNever:
      request_content_ = Content::kTold;
      return;
    case Exchange::ContentDemand::kNow:
      request_content_ = Content::kTold;
      exchange_.on_content_end(trailers_);
      return;
  }
}

void Http2Stream::want_content() {
  if (!kept_.empty() || request_content_ == Content::kEnded) carrier_.resume_later(*this);
}

// The exchange is asked again for each part of the kept content: its window is a quarter of a MiB.
void Http2Stream::resume() {
  if (state_ == State::kEnded) return;
  std::string_view left = kept_;
  constexpr std::size_t kPieceBytes = std::size_t{64} * 1024;
  while (!left.empty() && state_ != State::kEnded) {
    const std::size_t given = give(left.substr(0, kPieceBytes));
    if (given == 0) break;
    left.remove_prefix(given);
  }
  if (left.empty()) {
    kept_ = {};
    tell_end();
  } else {
    kept_.erase(0, kept_.size() - left.size());
  }
  carrier_.flush_later();  // windows that have opened
}

// --- the response ---

void Http2Stream::send_interim(std::string_view head) {
  ENCORE_CHECK(state_ == State::kOpen, "interim responses come before the final one");
  session().send_interim(id_, head);
  (void)sent_bytes();  // a stream that its client resets next is asked no more
}

void Http2Stream::begin(Response response, BodyReader& content) {
  ENCORE_CHECK(state_ == State::kOpen, "a request has one response");
  state_ = State::kBegun;
  content_ = &content;
  if (request_->asks_upgrade() && !kept_.empty()) carrier_.resume_later(*this);
  session().respond(id_, response.head, framing_of(response.framing), this, response.trailers);
  (void)sent_bytes();
}

ClientStream::Status Http2Stream::pump() {
  ENCORE_CHECK(state_ != State::kEnded, "nothing is sent behind the end");
  // It takes no response any more, and says so of each stream at its next call.
  if (session().is_ended()) return Status::kDead;
  // Not where there is nothing yet: the session would look, and say so again.
  if (session().status(id_) == h2::SendStatus::kWaiting && has_more()) session().resume(id_);
  carrier_.flush_later();
  switch (session().status(id_)) {
    case h2::SendStatus::kIdle:
      return Status::kDone;
    case h2::SendStatus::kDone:
      account(request_->client);
      return await_delivery() ? Status::kDone : Status::kBlocked;
    case h2::SendStatus::kBlocked:
      // The connection's flush may write all of it, and counts what is left.
      return Status::kBlocked;
    case h2::SendStatus::kWaiting:
      account(request_->client);
      return Status::kWaiting;
    case h2::SendStatus::kBroken:
      return Status::kBroken;
    case h2::SendStatus::kGone:
      break;
  }
  return Status::kDead;
}

bool Http2Stream::has_more() {
  std::array<iovec, 2> room;
  return content_->peek(room, 1).state != BodyReader::State::kWaiting;
}

void Http2Stream::end(End how) {
  ENCORE_CHECK(state_ != State::kEnded, "a request ends once");
  state_ = State::kEnded;
  switch (how) {
    case End::kDone:
      session().release(id_);
      break;
    case End::kBroken:
      session().reset(id_, h2::ErrorCode::kInternalError);
      break;
    case End::kReset:
      session().reset(id_, h2::ErrorCode::kCancel);
      break;
  }
  carrier_.flush_later();
  carrier_.on_responder_end(*this);
}

void Http2Stream::switch_protocol(SwitchedConnection switched) {
  ENCORE_CHECK(state_ == State::kOpen, "a request has one response");
  state_ = State::kEnded;
  carrier_.on_switched(*this, std::move(switched));
}

void Http2Stream::on_writable(h2::StreamId) {
  (void)sent_bytes();
  exchange_.on_writable();
}

void Http2Stream::on_gone(h2::StreamId, h2::ErrorCode) {
  ENCORE_CHECK(state_ != State::kEnded, "the session forgets a stream that ends");
  state_ = State::kEnded;
  exchange_.on_gone(carrier_.gone());
  carrier_.on_responder_end(*this);
}

void Http2Stream::end_by(const ClientGone& why) {
  ENCORE_CHECK(state_ != State::kEnded, "a request ends once");
  state_ = State::kEnded;
  (void)sent_bytes();
  exchange_.on_gone(why);
  session().reset(id_, h2::ErrorCode::kCancel);
  carrier_.flush_later();
  carrier_.on_responder_end(*this);
}

void Http2Stream::cut() { exchange_.cut(); }

void Http2Stream::check_timeouts(MonotonicTime now) {
  if (state_ != State::kEnded) exchange_.check_timeouts(now);
}

bool Http2Stream::has_taken_all() const {
  return carrier_.connection_stream().bytes_taken() == carrier_.connection_stream().bytes_written();
}

h2::ContentSource::Peeked Http2Stream::peek(std::span<iovec> room, std::size_t bytes_max) {
  return peek_for_http2(*content_, room, bytes_max);
}

}  // namespace encore::server
