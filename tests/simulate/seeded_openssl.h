// SeededOpenssl: while it lives, all random numbers of OpenSSL in this process come from a seed:
// keys, nonces, signatures and session tickets are the same again. One at a time, one thread.
#pragma once

#include "tests/fuzz/proxy/random.h"

namespace encore::simulate {

class SeededOpenssl {
 public:
  explicit SeededOpenssl(proxyfuzz::Random random);
  ~SeededOpenssl();
  SeededOpenssl(const SeededOpenssl&) = delete;
  SeededOpenssl& operator=(const SeededOpenssl&) = delete;
};

}  // namespace encore::simulate
