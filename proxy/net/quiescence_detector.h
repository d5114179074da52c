// QuiescenceDetector: tells, look by look, on what nothing moves any more. A value. Why silence
// ends a drain: docs/decisions/0316.
#pragma once

#include <cstdint>
#include <limits>

#include "proxy/net/stream.h"

namespace encore::net {

// Bytes that went through a stream, either way; of those that were written, those that have arrived
// at the peer. Only to be compared with another count of the same stream. Asks the kernel.
inline std::uint64_t moved_bytes(const Stream& stream) {
  return stream.bytes_read() + stream.bytes_written() - stream.bytes_in_kernel();
}

class QuiescenceDetector {
 public:
  // Looks in a row that find no change until it is quiet.
  static constexpr unsigned kLooks = 2;

  // One look. `moved` counts what has moved. True: it is what it was, kLooks times by now.
  bool look(std::uint64_t moved) {
    if (moved != moved_) {
      moved_ = moved;
      looks_ = 0;
      return false;
    }
    return ++looks_ >= kLooks;
  }

 private:
  std::uint64_t moved_ = std::numeric_limits<std::uint64_t>::max();  // nobody has looked yet
  unsigned looks_ = 0;
};

}  // namespace encore::net
