// RequestWriter: sends a request to an origin, its head and the body as the client brings it, in
// the order of the connection. Over HTTP/1.1 body bytes that were taken are not kept: they cannot
// be sent again.
//
// Confined to its worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/http/framing.h"
#include "proxy/net/stream.h"
#include "proxy/origin/origin_stream.h"

namespace encore::server {

class RequestWriter {
 public:
  // Body of the request, if it has one that the first reader brings.
  enum class Body : std::uint8_t { kNone, kExpected };

  explicit RequestWriter(Body body);
  ~RequestWriter();
  RequestWriter(const RequestWriter&) = delete;
  RequestWriter& operator=(const RequestWriter&) = delete;

  // A new connection: the head is sent from its beginning. The text's contents are whatever they
  // were; the caller writes the head into it, calls frame(), and then flushes.
  std::string& begin();
  // How the content goes on this connection: over HTTP/2 without chunks, as with a length. With a
  // length its trailers are left out (RFC 9110 6.5.1). REQUIRES: begin(), and the head was written;
  // not with a length that was not announced, unless all is gathered.
  void frame(http::BodyKind framing);
  // Writes what is left, as far as the connection takes it. After kError it is broken.
  net::WriteResult flush(OriginStream stream);
  // The connection takes no more of it; the origin may have answered before.
  void set_broken() { broken_ = true; }
  bool is_broken() const { return broken_; }

  // A complete response does not end it: what is left of it is sent all the same.
  void set_outlives_response() { outlives_response_ = true; }
  bool outlives_response() const { return outlives_response_ && !broken_; }

  // Over HTTP/2: the next connection gets all of it again, which its server has not worked on.
  // False where some of the content is not here any more: kReplayBytesMax of it are kept.
  bool rewind();
  static constexpr std::size_t kReplayBytesMax = std::size_t{64} * 1024;

  // Takes what the client brings before there is a connection, however much is there already.
  // REQUIRES: begin() was not called, the body has not ended.
  void gather(std::string_view content, bool last, std::string_view trailers);
  std::size_t gathered_bytes() const { return gathered_; }
  // All of the content is here, and nothing of it was sent.
  bool has_gathered_all() const {
    return upload_ == Upload::kEnded && gathered_ == body_.size() && body_sent_ == 0;
  }

  // True if the connection has taken all that there was, so that more may be added.
  bool accepts_upload() const { return !broken_ && is_flushed(); }
  // REQUIRES: accepts_upload(), the body has not ended.
  void upload(std::string_view content, bool last, std::string_view trailers,
              http::BodyKind framing);

  // Nothing is left of what is there: the client may bring more.
  bool is_flushed() const { return head_sent_ == head_.size() && body_.empty() && !is_ending_; }
  // The whole request is with the origin.
  bool is_complete() const { return !broken_ && is_flushed() && !expects_upload(); }
  // The rest of the body is still to come from the client.
  bool expects_upload() const { return upload_ == Upload::kExpected || upload_ == Upload::kBegun; }
  // The client is waited for, not the origin.
  bool waits_for_client() const { return expects_upload() && body_.empty() && !broken_; }
  // Some of the body was taken, which cannot be sent again.
  bool has_taken_body() const { return upload_ == Upload::kBegun || upload_ == Upload::kEnded; }
  // A byte of it has gone out on this connection.
  bool has_begun() const { return head_sent_ != 0; }

 private:
  void append_last_chunk(std::string_view trailers);
  net::WriteResult flush_http2(OriginHttp2Stream& stream);
  void note_taken(std::size_t bytes);

  enum class Upload : std::uint8_t { kNone, kExpected, kBegun, kEnded };

  std::string head_;
  std::size_t head_sent_ = 0;
  std::string body_;          // bytes that the client has brought and the connection not taken
  std::size_t gathered_ = 0;  // those that were there before the connection
  std::string trailers_;      // that came with it
  std::size_t body_sent_ = 0;
  Upload upload_;
  std::string replay_;         // over HTTP/2: content that has left
  bool is_replayable_ = true;  // replay_ has all of it
  bool broken_ = false;
  bool is_ending_ = false;  // over HTTP/2: all has left but the end
  bool outlives_response_ = false;
};

}  // namespace encore::server
