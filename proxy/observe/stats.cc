#include "proxy/observe/stats.h"

#include <limits>

namespace encore::server {

std::size_t latency_bucket(Nanoseconds latency) noexcept {
  // In units of 250 ns a doubling's four steps are the two bits below the leading one.
  const auto count = latency.count() <= 0 ? 0 : static_cast<std::uint64_t>(latency.count() - 1);
  const std::uint64_t scaled = count / 250;
  if (scaled < 4) return 0;
  const auto exponent = static_cast<std::size_t>(std::bit_width(scaled)) - 3;  // 0 for 4..7
  const auto step = static_cast<std::size_t>(scaled >> exponent) & 3U;
  const std::size_t bucket = exponent * 4 + step + 1;
  return bucket < kLatencyBuckets ? bucket : kLatencyBuckets - 1;
}

double latency_bucket_bound(std::size_t bucket) noexcept {
  if (bucket + 1 >= kLatencyBuckets) return std::numeric_limits<double>::infinity();
  if (bucket == 0) return 1e-6;
  const std::size_t exponent = (bucket - 1) / 4;
  const std::size_t step = (bucket - 1) % 4;
  return 250e-9 * static_cast<double>((5 + step) << exponent);
}

}  // namespace encore::server
