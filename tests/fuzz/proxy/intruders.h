// Intruders: clients of a listener with TLS that keep to nothing. They send garbage and plain HTTP
// instead of a ClientHello, handshakes and records that end, stop or are damaged at any byte,
// protocols that nobody speaks, key updates by the dozen. The proxy has only to go on: they send no
// whole request, or a malformed one. One thread.
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
