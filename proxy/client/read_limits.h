// Limits for clients that read slowly, whichever protocol they speak.
#pragma once

#include <chrono>
#include <cstdint>

#include "config/config.h"
#include "proxy/transfer/read_rate.h"

namespace encore::server {

// A client whose reads may pause for any time is measured over this.
inline constexpr Nanoseconds kReadRateWindow = std::chrono::seconds(60);

inline MinimumReadRate minimum_read_rate(const config::Config& config) {
  const Nanoseconds window = config.timeouts.client_write;
  return {config.limits.client_write_rate_min, window.count() == 0 ? kReadRateWindow : window};
}

// True if the client needs more than two seconds for so many bytes. False: it is not known.
inline bool is_slow_for(const ReadRateMeter& pace, std::uint64_t bytes) {
  return pace.is_known() && bytes / 2 > pace.bytes_per_second();
}

}  // namespace encore::server
