// The two listeners of a round's proxy: which one a client uses, and from which address.
#pragma once

#include "tests/fuzz/proxy/client.h"
#include "tests/fuzz/proxy/process.h"

namespace encore::proxyfuzz {

class TwoListeners final : public Front {
 public:
  explicit TwoListeners(const Process& process) : process_(process) {}
  int connect(Random& random, Asker& asker, int receive_buffer) override;

 private:
  const Process& process_;
};

}  // namespace encore::proxyfuzz
