#include "proxy/origin/origin_http2_stream.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace encore::server {
namespace {

constexpr unsigned kNoContent = 204;
constexpr unsigned kNotModified = 304;

// The status of a text that the session has written: "HTTP/1.1 200 OK".
unsigned status_of(std::string_view head) {
  unsigned status = 0;
  for (const char c : head.substr(std::string_view("HTTP/1.1 ").size(), 3)) {
    status = status * 10 + static_cast<unsigned>(c - '0');
  }
  return status;
}

// A response that ends with its head has content of no bytes: HTTP/1.1 would read on.
std::string with_length(std::string_view head) {
  constexpr std::string_view kEnd = "\r\n";
  std::string text(head.substr(0, head.size() - kEnd.size()));
  // Names are in lower case here (h2::check_field).
  if (!text.contains("\ncontent-length:")) text += "content-length: 0\r\n";
  return text += kEnd;
}

}  // namespace

OriginHttp2Stream::~OriginHttp2Stream() {
  ENCORE_CHECK(carrier_ == nullptr, "a stream is released before it is destroyed");
}

bool OriginHttp2Stream::send_head(std::string_view head, Content content) {
  ENCORE_CHECK(id_ == 0 && carrier_ != nullptr, "a stream has one request");
  is_head_ = head.starts_with("HEAD ");
  read_before_ = carrier_->bytes_read();
  id_ = carrier_->session().request(
      {.head = head,
       .scheme = carrier_->scheme(),
       .content = content == Content::kFollows ? static_cast<h2::ContentSource*>(this) : nullptr,
       .trailers = &trailers_},
      *this);
  sent_bytes_ += head.size();
  carrier_->flush_later();
  return id_ != 0;
}

void OriginHttp2Stream::offer(std::string_view content) {
  ENCORE_CHECK(!has_all_content_, "nothing comes behind the last content");
  content_ = content;
  if (carrier_ == nullptr) return;
  carrier_->session().resume(id_);
  carrier_->flush_later();
}

void OriginHttp2Stream::offer_last(std::string_view content, std::string_view trailers) {
  if (has_all_content_) return;
  trailers_ = trailers;
  offer(content);
  has_all_content_ = true;
}

std::size_t OriginHttp2Stream::taken_bytes() { return std::exchange(taken_bytes_, 0); }

bool OriginHttp2Stream::has_sent_all() const {
  if (carrier_ == nullptr) return true;
  const h2::SendStatus status = carrier_->session().status(id_);
  return status == h2::SendStatus::kDone || status == h2::SendStatus::kGone;
}

void OriginHttp2Stream::resume_reading() {
  is_paused_ = false;
  if (carrier_ == nullptr || (kept_.empty() && end_ == End::kNotYet)) return;
  carrier_->deliver_later(*this);
}

void OriginHttp2Stream::distrust_silence() {
  if (carrier_ != nullptr && carrier_->bytes_read() == read_before_) carrier_->retire();
}

void OriginHttp2Stream::release() {
  if (carrier_ == nullptr) return;
  handler_ = nullptr;
  OriginHttp2Carrier& carrier = *std::exchange(carrier_, nullptr);
  if (id_ != 0) carrier.session().reset(id_, h2::ErrorCode::kCancel);
  content_ = {};
  carrier.on_released(*this);
}

// --- the response ---

void OriginHttp2Stream::on_head(std::string_view text, bool is_final, bool has_content) {
  received_bytes_ += text.size();
  if (handler_ == nullptr) return;
  const bool ends = is_final && !has_content;
  const unsigned status = status_of(text);
  if (ends && !is_head_ && status != kNoContent && status != kNotModified) {
    handler_->on_stream_bytes(with_length(text));
  } else {
    handler_->on_stream_bytes(text);
  }
  if (ends) on_content_end(id_, {});
}

void OriginHttp2Stream::on_content(h2::StreamId, std::string_view bytes) {
  received_bytes_ += bytes.size();
  if (!may_tell()) {
    kept_.append(bytes);
    return;
  }
  const std::size_t used = give(bytes);
  if (handler_ == nullptr || used == bytes.size()) return;
  kept_.append(bytes.substr(used));
  if (!is_paused_ && used != 0) carrier_->deliver_later(*this);
}

// Returns how many bytes were used.
std::size_t OriginHttp2Stream::give(std::string_view bytes) {
  const std::size_t used = std::min(handler_->on_stream_bytes(bytes), bytes.size());
  if (handler_ == nullptr) return bytes.size();
  carrier_->session().consume(id_, used);
  carrier_->flush_later();
  return used;
}

void OriginHttp2Stream::deliver() {
  while (handler_ != nullptr && !is_paused_ && !kept_.empty()) {
    const std::string kept = std::exchange(kept_, {});
    const std::size_t used = give(kept);
    if (handler_ == nullptr) return;
    kept_ = kept.substr(used);
    if (used == 0) return;
  }
  if (may_tell()) tell_end();
}

void OriginHttp2Stream::on_content_end(h2::StreamId, std::string_view trailers) {
  end_ = End::kWhole;
  response_trailers_ = trailers;
  if (may_tell()) tell_end();
}

void OriginHttp2Stream::on_gone(h2::StreamId, h2::ErrorCode code) {
  if (carrier_ == nullptr) return;
  using Kind = StreamFailure::Kind;
  content_ = {};
  const std::string_view fault = carrier_->session().fault();
  if (carrier_->session().is_ended()) {
    failure_ = carrier_->failure();
  } else if (!fault.empty()) {
    failure_ = {.kind = Kind::kInvalid, .why = fault};
  } else if (code == h2::ErrorCode::kRefusedStream) {
    failure_ = {.kind = Kind::kRefused, .why = "refused-stream"};
  } else {
    failure_ = {.kind = Kind::kReset, .why = "stream-reset"};
  }
  is_gone_ = true;
  if (end_ == End::kWholeTold) {
    if (handler_ != nullptr) handler_->on_stream_failed(failure_);
    return;
  }
  // A response that has come whole stays so.
  if (end_ == End::kNotYet) end_ = End::kFailed;
  if (may_tell()) tell_end();
}

void OriginHttp2Stream::tell_end() {
  switch (end_) {
    case End::kNotYet:
    case End::kWholeTold:
      return;
    case End::kWhole:
      end_ = End::kWholeTold;
      handler_->on_stream_end(response_trailers_);
      // No more of the request is taken.
      if (is_gone_ && handler_ != nullptr) handler_->on_stream_failed(failure_);
      return;
    case End::kFailed:
      return handler_->on_stream_failed(failure_);
  }
}

// --- the request's content ---

void OriginHttp2Stream::on_writable(h2::StreamId) {
  if (handler_ != nullptr) handler_->on_stream_writable();
}

h2::ContentSource::Peeked OriginHttp2Stream::peek(std::span<iovec> room, std::size_t bytes_max) {
  if (content_.empty()) return {.state = has_all_content_ ? State::kEnd : State::kWaiting};
  const std::size_t bytes = std::min(content_.size(), bytes_max);
  room.front() = {const_cast<char*>(content_.data()), bytes};
  return {.state = State::kReady, .parts = 1, .bytes = bytes};
}

void OriginHttp2Stream::advance(std::size_t bytes) {
  ENCORE_CHECK(bytes <= content_.size(), "no more content leaves than there is");
  content_.remove_prefix(bytes);
  taken_bytes_ += bytes;
  sent_bytes_ += bytes;
}

}  // namespace encore::server
