#include "proxy/client/http1_writer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/recycled.h"
#include "proxy/http/chunked.h"

namespace encore::server {
namespace {

constexpr std::size_t kPartsMax = 64;

}  // namespace

void Http1Writer::add_text(std::string text) {
  ENCORE_CHECK(content_ == nullptr, "text stands before the content");
  if (text_.empty()) {
    ENCORE_CHECK(text.size() >= text_written_, "what was sent ahead of a text is its beginning");
    text_ = std::move(text);
  } else {
    text_ += text;
  }
}

void Http1Writer::set_content(BodyReader& content, Coding coding, const std::string* trailers) {
  ENCORE_CHECK(content_ == nullptr && chunk_left_ == 0, "a response has one content");
  content_ = &content;
  coding_ = coding;
  trailers_ = trailers;
}

Http1Writer::Status Http1Writer::send_ahead(net::Stream& stream, std::string_view bytes) {
  if (!text_.empty() || content_ != nullptr || text_written_ != 0) return Status::kWaiting;
  const net::WriteResult result = stream.write(bytes);
  if (result.status == net::WriteStatus::kError) return Status::kDead;
  text_written_ = result.bytes;
  sent_bytes_ += result.bytes;
  return text_written_ != 0 ? Status::kDone : Status::kBlocked;
}

Http1Writer::Status Http1Writer::pump(net::Stream& stream) {
  const std::uint64_t sent_before = sent_bytes_;
  last_ = pump_share(stream);
  if (last_ == Status::kDone && sent_bytes_ > kLittleBytes) last_ = await_sent(stream);
  if (!is_blocked()) {
    stall_since_ = {};
  } else if (sent_bytes_ != sent_before || stall_since_ == MonotonicTime{}) {
    stall_since_ = stream.loop().now();
  }
  return last_;
}

// The kernel takes megabytes of which a client that leaves gets nothing: what is recorded of a
// response as delivered is what went out to it.
Http1Writer::Status Http1Writer::await_sent(net::Stream& stream) const {
  switch (stream.await_sent()) {
    case net::Stream::Sent::kAll:
      return Status::kDone;
    case net::Stream::Sent::kNotYet:
      return Status::kBlocked;
    case net::Stream::Sent::kNever:
      break;
  }
  return Status::kDead;
}

Nanoseconds Http1Writer::stalled_for(MonotonicTime now, const net::Stream& stream) {
  if (!is_blocked()) return Nanoseconds(0);
  // The kernel has megabytes for the client, which takes them while nothing more is written.
  const std::uint64_t taken_before = taken_;
  taken_ = stream.bytes_taken();
  if (taken_ != taken_before || stall_since_ == MonotonicTime{}) stall_since_ = now;
  return now - stall_since_;
}

bool Http1Writer::is_finished() const {
  const bool read = content_ == nullptr || (coding_ == Coding::kIdentity && content_->at_end());
  return text_.empty() && read;
}

Http1Writer::Status Http1Writer::pump_share(net::Stream& stream) {
  pump_bytes_ = 0;
  // Under TLS a share is as much time, and so fewer bytes.
  const std::uint64_t cost = stream.is_tls() ? net::TurnShares::kTlsCost : 1;
  const std::size_t share = stream.loop().shares().allowance() / cost;
  const bool is_due = share > kLittleBytes;
  // One byte more than is little shows that there is much.
  const std::size_t pump_bytes_max = is_due ? share : kLittleBytes + 1;
  while (!is_finished()) {
    if (pump_bytes_ >= pump_bytes_max) return Status::kMore;
    std::array<iovec, kPartsMax> parts;
    BodyReader::Peeked peeked;
    if (content_ != nullptr) {
      std::size_t bytes_max = pump_bytes_max - pump_bytes_;
      if (chunk_left_ != 0) bytes_max = std::min<std::uint64_t>(bytes_max, chunk_left_);
      peeked = content_->peek(std::span(parts).subspan(1), bytes_max);
      if (!is_due && peeked.bytes == bytes_max && pump_bytes_ + bytes_max == pump_bytes_max)
        return Status::kMore;
      frame(peeked);
    }
    const std::size_t text_left = text_.size() - text_written_;
    if (text_left == 0 && peeked.bytes == 0) {
      if (peeked.state == BodyReader::State::kWaiting) return Status::kWaiting;
      if (peeked.state == BodyReader::State::kBroken) return Status::kBroken;
      continue;
    }
    parts[0] = {text_.data() + text_written_, text_left};
    const Status status = write(
        stream,
        std::span(parts).subspan(text_left == 0 ? 1 : 0, peeked.parts + (text_left == 0 ? 0 : 1)));
    if (status != Status::kDone) return status;
  }
  give_text(std::exchange(text_, {}));
  return Status::kDone;
}

void Http1Writer::frame(const BodyReader::Peeked& peeked) {
  if (coding_ == Coding::kIdentity) {
    if (peeked.state == BodyReader::State::kEnd) content_ = nullptr;
    return;
  }
  if (chunk_left_ != 0) {
    // Shown bytes may be let go, and come again from another body: waited for, or broken off, but
    // never ended sooner.
    ENCORE_CHECK(peeked.state != BodyReader::State::kEnd, "what a chunk was begun with is there");
    return;
  }
  if (peeked.state == BodyReader::State::kReady) {
    chunk_left_ = peeked.bytes;
    std::array<char, http::kChunkHeadMax> head;
    text_.append(head.data(), http::write_chunk_head(chunk_left_, head.data()));
  } else if (peeked.state == BodyReader::State::kEnd) {
    end_content();
  }
}

void Http1Writer::end_content() {
  text_ += http::kLastChunk;
  if (trailers_ != nullptr) text_ += *trailers_;
  text_ += http::kChunkEnd;
  content_ = nullptr;
}

Http1Writer::Status Http1Writer::write(net::Stream& stream, std::span<const iovec> parts) {
  const net::WriteResult result = stream.write(parts);
  sent_bytes_ += result.bytes;
  const std::size_t from_text = std::min(result.bytes, text_.size() - text_written_);
  text_written_ += from_text;
  if (text_written_ == text_.size()) {
    text_.clear();
    text_written_ = 0;
  }
  const std::size_t from_content = result.bytes - from_text;
  if (from_content != 0) {
    content_->advance(from_content);
    pump_bytes_ += from_content;  // heads count nothing
    if (coding_ == Coding::kChunked) {
      chunk_left_ -= from_content;
      // It goes out with the next head, or the end.
      if (chunk_left_ == 0) text_ += http::kChunkEnd;
    }
  }
  if (result.status == net::WriteStatus::kError) return Status::kDead;
  return result.status == net::WriteStatus::kBlocked ? Status::kBlocked : Status::kDone;
}

}  // namespace encore::server
