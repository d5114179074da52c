// ReadRateMeter: how fast a client takes its response, measured only while it is the client that is
// waited for. Looked at about once a second; between looks it costs nothing. Confined to its
// worker.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/time.h"

namespace encore::server {

// The least that a client must take; 0 in either: no such limit.
struct MinimumReadRate {
  std::uint64_t bytes_per_second = 0;
  Nanoseconds window{};
};

class ReadRateMeter {
 public:
  // The client has taken all that there is: it is not waited for.
  void record_unblocked() {
    blocked_ = false;
    known_ = false;
    window_ = {};
    window_bytes_ = 0;
  }
  // There is more than the client takes; until now it took `taken` bytes of its connection.
  void record_blocked(MonotonicTime now, std::uint64_t taken) {
    const Nanoseconds elapsed = now - looked_;
    const std::uint64_t bytes = taken > taken_ ? taken - taken_ : 0;
    looked_ = now;
    taken_ += bytes;
    if (!std::exchange(blocked_, true)) return;
    const std::uint64_t rate = per_second(bytes, elapsed);
    rate_ = known_ ? (rate_ + rate) / 2 : rate;
    known_ = true;
    window_ += elapsed;
    window_bytes_ += bytes;
  }

  // True if the last two looks or more found the client behind.
  bool is_known() const { return known_; }
  // Bytes a second; what is a look older counts half. REQUIRES: is_known().
  std::uint64_t bytes_per_second() const { return rate_; }
  // At the end of each window: true if too little was received in it. Call it once per check.
  bool is_below(const MinimumReadRate& least) {
    if (least.bytes_per_second == 0 || least.window.count() == 0) return false;
    if (window_ < least.window) return false;
    const bool below = per_second(window_bytes_, window_) < least.bytes_per_second;
    window_ = {};
    window_bytes_ = 0;
    return below;
  }

 private:
  static std::uint64_t per_second(std::uint64_t bytes, Nanoseconds elapsed) {
    const auto seconds = std::chrono::duration<double>(elapsed).count();
    return static_cast<std::uint64_t>(static_cast<double>(bytes) / std::max(seconds, 1e-3));
  }

  MonotonicTime looked_{};
  std::uint64_t taken_ = 0;
  bool blocked_ = false;  // at the last look
  bool known_ = false;
  std::uint64_t rate_ = 0;
  Nanoseconds window_{};  // time of being behind, until now
  std::uint64_t window_bytes_ = 0;
};

}  // namespace encore::server
