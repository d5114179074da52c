// StreamHandler: receives the events of one stream. Confined to its session's thread.
#pragma once

#include <string_view>

#include "proxy/h2/frame.h"

namespace encore::h2 {

// Called by the session's receive(), sent() and check_timeouts(), and by no other of its functions.
// In each of these calls everything of the session may be called but those three and gather(); the
// session must not be destroyed.
class StreamHandler {
 public:
  // Content of the message that is received. The bytes count against the stream's window until
  // Session::consume(); who cannot use them now keeps them.
  virtual void on_content(StreamId stream, std::string_view bytes) = 0;
  // All of it has come. `trailers`: field lines, each with CRLF; mostly none.
  virtual void on_content_end(StreamId stream, std::string_view trailers) = 0;
  // Some of what is to be sent has gone, or Session::status() has changed.
  virtual void on_writable(StreamId stream) = 0;
  // The stream is no more, and this was the last call: the peer has reset it, a limit has, or the
  // connection has ended. Not called after reset() or release().
  virtual void on_gone(StreamId stream, ErrorCode code) = 0;

 protected:
  ~StreamHandler() = default;
};

}  // namespace encore::h2
