// StallDetector: tells whether a client takes nothing at all while others wait for it. Pure.
// Confined to its worker. Why a client is cut so soon: docs/decisions/0321.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace encore::server {

class StallDetector {
 public:
  // The interval of checks while others wait: the third check, after 90 ms, finds a transfer that
  // stands still, and the others go on before 100 ms have passed.
  static constexpr Nanoseconds kLookInterval = std::chrono::milliseconds(45);
  static constexpr Nanoseconds kLimit = std::chrono::milliseconds(80);
  // A client far away takes its bytes in bursts, a round trip apart as long as its connection is
  // young; a lost burst is sent again a round trip or two later.
  static constexpr int kLimitRoundTrips = 3;
  // A client can feign a long round trip. It gains no more time than that in which it is cut for
  // the time that the others wait (Transfer::blame_slowest).
  static constexpr Nanoseconds kLimitMax = std::chrono::seconds(2);
  // One that cannot go on by itself would lose its response. If it was seen to take something
  // while others waited, it may take nothing for so long: some systems tell of the room in a
  // buffer of megabytes in steps of .2 s.
  static constexpr Nanoseconds kMoverLimit = std::chrono::milliseconds(400);

  // Returns for how long a client with that round trip may take nothing. 0: not known.
  static constexpr Nanoseconds limit(Nanoseconds round_trip) {
    return std::clamp(kLimitRoundTrips * std::min(round_trip, kLimitMax), kLimit, kLimitMax);
  }

  // `taken` bytes have arrived at the client, for which there are more. Returns whether it has been
  // the same number for its limit, as far as the looks can tell. `round_trip()` is that of its
  // connection; called only for one that has taken nothing for kLimit, for it asks the kernel.
  template <typename RoundTrip>
  bool look(MonotonicTime now, std::uint64_t taken, RoundTrip&& round_trip) {
    if (!since_ || taken != taken_) {
      moves_ = since_.has_value();
      since_ = now;
      taken_ = taken;
    }
    const Nanoseconds stands = now - *since_;
    return stands >= kLimit && stands >= limit(round_trip());
  }
  // For a reader that stands still: whether it has been seen to move, and not for long.
  bool may_move_on(MonotonicTime now) const { return moves_ && now - *since_ < kMoverLimit; }

 private:
  std::optional<MonotonicTime> since_;  // when the present number was first seen
  std::uint64_t taken_ = 0;
  bool moves_ = false;
};

}  // namespace encore::server
