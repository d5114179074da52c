#include "proxy/origin/request_writer.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/recycled.h"
#include "proxy/http/chunked.h"
#include "proxy/origin/origin_http2_stream.h"

namespace encore::server {

RequestWriter::RequestWriter(Body body)
    : head_(take_text()), upload_(body == Body::kExpected ? Upload::kExpected : Upload::kNone) {}

RequestWriter::~RequestWriter() { give_text(std::move(head_)); }

std::string& RequestWriter::begin() {
  head_sent_ = 0;
  broken_ = is_ending_ = false;
  outlives_response_ = false;
  body_.resize(gathered_);  // without the chunk of another connection
  return head_;
}

// The line of the first chunk goes with the head, so that the content need not be moved.
void RequestWriter::frame(http::BodyKind framing) {
  if (framing != http::BodyKind::kChunked || !has_taken_body()) return;
  if (gathered_ != 0) {
    std::array<char, http::kChunkHeadMax> size;
    head_.append(size.data(), http::write_chunk_head(gathered_, size.data()));
    body_ += http::kChunkEnd;
  }
  if (upload_ == Upload::kEnded) append_last_chunk(trailers_);
}

void RequestWriter::append_last_chunk(std::string_view trailers) {
  body_ += http::kLastChunk;
  body_ += trailers;
  body_ += http::kChunkEnd;
}

net::WriteResult RequestWriter::flush(OriginStream stream) {
  if (stream.http2() != nullptr) [[unlikely]]
    return flush_http2(*stream.http2());
  std::array<iovec, 2> parts;
  std::size_t count = 0;
  const std::size_t head_left = head_.size() - head_sent_;
  if (head_left != 0) parts[count++] = {head_.data() + head_sent_, head_left};
  const std::size_t body_left = body_.size() - body_sent_;
  if (body_left != 0) parts[count++] = {body_.data() + body_sent_, body_left};
  if (count == 0) return {};
  const net::WriteResult result = stream.connection().write(std::span(parts.data(), count));
  ENCORE_CHECK(result.bytes <= head_left + body_left, "no more is sent than there is");
  const std::size_t of_head = std::min(result.bytes, head_left);
  head_sent_ += of_head;
  body_sent_ += result.bytes - of_head;
  if (result.status == net::WriteStatus::kError) broken_ = true;
  if (result.status == net::WriteStatus::kAll) {
    body_.clear();
    body_sent_ = gathered_ = 0;
  }
  return result;
}

// Some more of the content has left.
void RequestWriter::note_taken(std::size_t bytes) {
  if (replay_.size() + bytes > kReplayBytesMax) {
    is_replayable_ = false;
    replay_ = {};
  }
  if (is_replayable_) replay_.append(body_, body_sent_, bytes);
  body_sent_ += bytes;
}

bool RequestWriter::rewind() {
  if (!is_replayable_) return false;
  body_.replace(0, body_sent_, replay_);
  replay_.clear();
  body_sent_ = 0;
  gathered_ = body_.size();
  return true;
}

// The stream reads the content and takes it when it may leave.
net::WriteResult RequestWriter::flush_http2(OriginHttp2Stream& stream) {
  using Content = OriginHttp2Stream::Content;
  net::WriteResult result;
  if (head_sent_ == 0) {
    const Content content = upload_ == Upload::kNone ? Content::kNone : Content::kFollows;
    if (!stream.send_head(head_, content)) {
      broken_ = true;
      return {.status = net::WriteStatus::kError};
    }
    head_sent_ = result.bytes = head_.size();
  }
  const std::size_t taken = stream.taken_bytes();
  note_taken(taken);
  result.bytes += taken;
  const std::string_view rest = std::string_view(body_).substr(body_sent_);
  if (upload_ == Upload::kEnded) {
    stream.offer_last(rest, trailers_);
  } else if (!rest.empty()) {
    stream.offer(rest);
  }
  is_ending_ = upload_ == Upload::kEnded && !stream.has_sent_all();
  if (rest.empty()) {
    body_.clear();
    body_sent_ = gathered_ = 0;
  }
  if (!rest.empty() || is_ending_) result.status = net::WriteStatus::kBlocked;
  return result;
}

void RequestWriter::gather(std::string_view content, bool last, std::string_view trailers) {
  ENCORE_CHECK(expects_upload(), "a body that has ended takes no more");
  upload_ = last ? Upload::kEnded : Upload::kBegun;
  body_ += content;
  gathered_ = body_.size();
  trailers_ = trailers;
}

void RequestWriter::upload(std::string_view content, bool last, std::string_view trailers,
                           http::BodyKind framing) {
  ENCORE_CHECK(accepts_upload(), "a body's next part comes when the one before has gone out");
  ENCORE_CHECK(expects_upload(), "a body that has ended takes no more");
  upload_ = last ? Upload::kEnded : Upload::kBegun;
  const bool chunked = framing == http::BodyKind::kChunked;
  if (chunked && !content.empty()) {
    std::array<char, http::kChunkHeadMax> size;
    body_.append(size.data(), http::write_chunk_head(content.size(), size.data()));
  }
  body_ += content;
  if (chunked && !content.empty()) body_ += http::kChunkEnd;
  if (last && chunked) append_last_chunk(trailers);
  if (last && !chunked) trailers_ = trailers;
}

}  // namespace encore::server
