#include "proxy/observe/stats.h"

#include <limits>

namespace encore::server {

double latency_bucket_bound(std::size_t bucket) noexcept {
  if (bucket + 1 >= kLatencyBuckets) return std::numeric_limits<double>::infinity();
  if (bucket == 0) return 1e-6;
  const std::size_t exponent = (bucket - 1) / 4;
  const std::size_t step = (bucket - 1) % 4;
  return 250e-9 * static_cast<double>((5 + step) << exponent);
}

}  // namespace encore::server
