// Standstill: tells whether a client takes nothing at all while others wait for it. Pure. Confined
// to its worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace encore::server {

class Standstill {
 public:
  // How often it is looked at while others wait: the third look, after 90 ms, finds one that stands
  // still, and the others go on before 100 ms have passed.
  static constexpr Nanoseconds kLookInterval = std::chrono::milliseconds(45);
  static constexpr Nanoseconds kLimit = std::chrono::milliseconds(80);

  // `taken` bytes have arrived at the client, for which there are more. Returns whether it has been
  // the same number for kLimit, as far as the looks can tell.
  bool look(MonotonicTime now, std::uint64_t taken) {
    if (!since_ || taken != taken_) {
      since_ = now;
      taken_ = taken;
    }
    return now - *since_ >= kLimit;
  }

 private:
  std::optional<MonotonicTime> since_;  // when the present number was first seen
  std::uint64_t taken_ = 0;
};

}  // namespace encore::server
