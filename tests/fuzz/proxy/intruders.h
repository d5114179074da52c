// Intruders: who comes to a listener with TLS and keeps to nothing. Garbage and plain HTTP instead
// of a ClientHello, handshakes and records that end, stop or are damaged at any byte, protocols
// that nobody speaks, key updates by the dozen. Nothing is asked of the proxy but that it goes on:
// what they send is no whole request, or a malformed one. One thread.
#pragma once

#include <memory>
#include <vector>

#include "tests/fuzz/proxy/client.h"

namespace encore::proxyfuzz {

class Intruders {
 public:
  // They come one after the other, a few at a time, until no request is left.
  // REQUIRES: `ring` has TLS.
  explicit Intruders(Ring& ring);
  ~Intruders();
  Intruders(const Intruders&) = delete;
  Intruders& operator=(const Intruders&) = delete;

 private:
  class Intruder;
  std::vector<std::unique_ptr<Intruder>> all_;
};

}  // namespace encore::proxyfuzz
