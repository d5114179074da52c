// OriginStream: the bytes of one request and its response on their way to and from an origin, as a
// fetch and its parts see them: a connection of HTTP/1, or a stream of one of HTTP/2. A view, which
// is borrowed with what it shows. Confined to its worker.
#pragma once

#include "base/check.h"
#include "proxy/net/stream.h"

namespace encore::server {

class OriginHttp2Stream;

class OriginStream {
 public:
  // Shows nothing.
  OriginStream() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a connection of HTTP/1 is one
  OriginStream(net::Stream& connection) : connection_(&connection) {}
  // NOLINTNEXTLINE(google-explicit-constructor): and so is a stream of HTTP/2
  OriginStream(OriginHttp2Stream& stream) : http2_(&stream) {}
  explicit operator bool() const { return connection_ != nullptr || http2_ != nullptr; }

  // Null: it is a connection of HTTP/1.
  OriginHttp2Stream* http2() const { return http2_; }
  // REQUIRES: it shows a connection of HTTP/1.
  net::Stream& connection() const {
    ENCORE_CHECK(connection_ != nullptr, "a view shows the connection that it was made of");
    return *connection_;
  }

  // As those of net::Stream. REQUIRES: it shows something.
  void pause_reading() const {
    if (connection_ == nullptr) [[unlikely]]
      return pause_http2();
    connection_->pause_reading();
  }
  void resume_reading() const {
    if (connection_ == nullptr) [[unlikely]]
      return resume_http2();
    connection_->resume_reading();
  }
  bool is_reading_paused() const {
    return connection_ != nullptr ? connection_->is_reading_paused() : is_http2_paused();
  }
  // A stream of HTTP/2 has an end of its own: nothing that comes behind it is read with it.
  bool has_more() const { return connection_ != nullptr && connection_->has_more(); }
  bool read_rest() const { return connection_ != nullptr && connection_->read_rest(); }
  const net::Address& peer() const {
    return connection_ != nullptr ? connection_->peer() : http2_peer();
  }

 private:
  void pause_http2() const;
  void resume_http2() const;
  bool is_http2_paused() const;
  const net::Address& http2_peer() const;

  net::Stream* connection_ = nullptr;
  OriginHttp2Stream* http2_ = nullptr;
};

}  // namespace encore::server
