#include "sim/replay/lru_curve.h"

#include <algorithm>
#include <utility>

namespace encore::sim {

LruCurve::LruCurve(LruCurveOptions options)
    : options_(std::move(options)), more_(options_.cache_bytes.size()) {}

void LruCurve::feed(std::span<const ReplayRequest> requests) {
  for (const ReplayRequest& request : requests) {
    one(request);
  }
}

void LruCurve::one(const ReplayRequest& request) {
  // Whether it is resident is decided by what it took until now.
  const std::uint64_t own = stack_.bytes_of(request.object);
  const auto others =
      stack_.request(request.object, charge_of(request) + options_.entry_overhead_bytes);
  if (!counting_) {
    return;
  }
  all_.add_request(request);
  if (!others) {
    return;
  }
  const double needed = static_cast<double>(own) + static_cast<double>(*others) / options_.rate;
  const auto smallest =
      std::ranges::lower_bound(options_.cache_bytes, needed, {},
                               [](std::uint64_t bytes) { return static_cast<double>(bytes); });
  if (smallest != options_.cache_bytes.end()) {
    more_[static_cast<std::size_t>(smallest - options_.cache_bytes.begin())].add_hit(request);
  }
}

std::vector<ReplayCounts> LruCurve::counts() const {
  std::vector<ReplayCounts> all;
  ReplayCounts counts = all_;
  for (const ReplayCounts& more : more_) {
    counts.hits += more.hits;
    counts.bytes_hit += more.bytes_hit;
    counts.heaviest_hits += more.heaviest_hits;
    counts.heaviest_bytes_hit += more.heaviest_bytes_hit;
    all.push_back(counts);
  }
  return all;
}

}  // namespace encore::sim
