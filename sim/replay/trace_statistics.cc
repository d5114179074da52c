#include "sim/replay/trace_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "sim/replay/ratio.h"

namespace encore::sim {
namespace {

// Least squares through log(count) over log(rank): the slope is -alpha. The head is left out, for
// it seldom follows the law, and the tail of small counts is all steps.
double fit_zipf(std::vector<std::uint32_t>& counts) {
  constexpr std::size_t kFrom = 10;
  constexpr std::size_t kTo = 1000;
  if (counts.size() < 2 * kFrom) {
    return 0;
  }
  const std::size_t to = std::min(kTo, counts.size());
  std::partial_sort(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(to), counts.end(),
                    std::greater<>());
  double n = 0;
  double sx = 0;
  double sy = 0;
  double sxx = 0;
  double sxy = 0;
  for (std::size_t rank = kFrom; rank < to && counts[rank] > 1; ++rank) {
    const double x = std::log(static_cast<double>(rank + 1));
    const double y = std::log(static_cast<double>(counts[rank]));
    n += 1;
    sx += x;
    sy += y;
    sxx += x * x;
    sxy += x * y;
  }
  const double spread = n * sxx - sx * sx;
  return n < kFrom || spread <= 0 ? 0 : -(n * sxy - sx * sy) / spread;
}

}  // namespace

double TraceSummary::one_hit_objects_share() const { return ratio_of(one_hit_objects, objects); }
double TraceSummary::one_hit_requests_share() const { return ratio_of(one_hit_objects, requests); }
double TraceSummary::infinite_hit_ratio() const { return ratio_of(requests - objects, requests); }
double TraceSummary::infinite_byte_hit_ratio() const {
  return ratio_of(repeat_bytes, bytes_requested);
}

void TraceStatistics::add(const Request& request) {
  if (running_.requests == 0) {
    running_.first_ns = request.time_ns;
    running_.last_ns = request.time_ns;
  }
  running_.first_ns = std::min(running_.first_ns, request.time_ns);
  running_.last_ns = std::max(running_.last_ns, request.time_ns);
  const std::uint64_t at = ++running_.requests;
  running_.bytes_requested += request.size_bytes;
  running_.with_ttl += request.ttl_seconds != kNoTtl ? 1 : 0;
  const auto [object, is_new] = objects_.insert(request.key);
  if (!is_new) {
    running_.repeat_bytes += request.size_bytes;
    running_.size_changes += object->size_last != request.size_bytes ? 1 : 0;
    running_.working_set.add(at - object->last_at, object->size_max);
    ++running_.reuse_distances[static_cast<std::size_t>(std::bit_width(at - object->last_at - 1))];
  }
  object->size_last = request.size_bytes;
  object->size_max = std::max(object->size_max, request.size_bytes);
  object->last_at = at;
  object->count += object->count == UINT32_MAX ? 0 : 1;
}

TraceSummary TraceStatistics::summary() const {
  TraceSummary summary = running_;
  summary.objects = objects_.size();
  std::vector<std::uint32_t> counts;
  counts.reserve(objects_.size());
  objects_.for_each([&](const filter::Hash128&, const Object& object) {
    summary.bytes_unique += object.size_max;
    summary.working_set.add(summary.requests + 1 - object.last_at, object.size_max);
    if (object.count == 1) {
      ++summary.one_hit_objects;
      summary.one_hit_bytes += object.size_max;
    }
    summary.most_requested = std::max<std::uint64_t>(summary.most_requested, object.count);
    counts.push_back(object.count);
  });
  summary.zipf_alpha = fit_zipf(counts);
  return summary;
}

}  // namespace encore::sim
