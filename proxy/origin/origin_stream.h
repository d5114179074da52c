// OriginStream: the bytes of one request and its response on their way to and from an origin, as a
// fetch and its parts see them: a connection of HTTP/1. A view, which is borrowed with what it
// shows. Confined to its worker.
#pragma once

#include "base/check.h"
#include "proxy/net/stream.h"

namespace encore::server {

class OriginStream {
 public:
  // Shows nothing.
  OriginStream() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a connection of HTTP/1 is one
  OriginStream(net::Stream& connection) : connection_(&connection) {}
  explicit operator bool() const { return connection_ != nullptr; }

  // REQUIRES: it shows a connection of HTTP/1.
  net::Stream& connection() const {
    ENCORE_CHECK(connection_ != nullptr, "a view shows the connection that it was made of");
    return *connection_;
  }

  // As those of net::Stream. REQUIRES: it shows something.
  void pause_reading() const { connection_->pause_reading(); }
  void resume_reading() const { connection_->resume_reading(); }
  bool is_reading_paused() const { return connection_->is_reading_paused(); }
  bool has_unread() const { return connection_->has_unread(); }
  bool read_rest() const { return connection_->read_rest(); }
  const net::Address& peer() const { return connection_->peer(); }

 private:
  net::Stream* connection_ = nullptr;
};

}  // namespace encore::server
