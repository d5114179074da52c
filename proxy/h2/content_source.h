// ContentSource: content that is to be sent on a stream, for the session to pull: as
// exchange/body_reader is pulled. Confined to its session's thread.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace encore::h2 {

class ContentSource {
 public:
  enum class State : std::uint8_t {
    kReady,    // there are bytes
    kWaiting,  // there are none now: Session::resume() says when
    kEnd,      // all of it is read
    kBroken,   // it ended before its end
  };
  struct Peeked {
    State state = State::kEnd;
    std::size_t parts = 0;
    std::size_t bytes = 0;  // not 0 with kReady, else 0
  };

  // Fills `room` from the front with what can be read now, at most `bytes_max` bytes, which may be
  // less than there is. The spans stay valid, and what they show stays to be read, until advance()
  // passes them. REQUIRES: room for two parts, bytes_max > 0.
  virtual Peeked peek(std::span<iovec> room, std::size_t bytes_max) = 0;
  // REQUIRES: no more than the last peek() has shown.
  virtual void advance(std::size_t bytes) = 0;

 protected:
  ~ContentSource() = default;
};

}  // namespace encore::h2
