#include "proxy/client/http2_pending_stream.h"

namespace encore::server {

void Http2PendingStream::set_work(Http2Responder* work) {
  work_ = work;
  if (work_ == nullptr) return;
  work_->front = this;
  text_ = {};
  const std::string content = std::exchange(content_, {});
  if (!content.empty()) work_->on_content(id_, content);
  // It may have ended with that.
  if (work_ != nullptr && has_ended_) work_->on_content_end(id_, trailers_);
}

// Work that it stands in front of is notified itself.
void Http2PendingStream::end_by(const ClientGone&) {
  if (work_ != nullptr || is_gone_) return;
  is_gone_ = true;
  session().reset(id_, h2::ErrorCode::kCancel);
  carrier_.flush_later();
  carrier_.on_responder_end(*this);
}

void Http2PendingStream::on_content(h2::StreamId stream, std::string_view bytes) {
  if (work_ != nullptr) {
    work_->on_content(stream, bytes);
  } else {
    content_ += bytes;
  }
}

void Http2PendingStream::on_content_end(h2::StreamId stream, std::string_view trailers) {
  if (work_ != nullptr) return work_->on_content_end(stream, trailers);
  has_ended_ = true;
  trailers_ = trailers;
}

void Http2PendingStream::on_writable(h2::StreamId stream) {
  if (work_ != nullptr) work_->on_writable(stream);
}

void Http2PendingStream::on_gone(h2::StreamId stream, h2::ErrorCode code) {
  is_gone_ = true;
  if (work_ != nullptr) {
    work_->on_gone(stream, code);
  } else {
    carrier_.on_responder_end(*this);
  }
}

}  // namespace encore::server
