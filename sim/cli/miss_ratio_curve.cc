#include "sim/cli/miss_ratio_curve.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/cli/sample_runs.h"
#include "sim/replay/lru_curve.h"

namespace encore::sim {
namespace {

// True if stack distances say what a replay would, see LruCurve. In a sample they are the better
// estimate for objects above the miniature's size too.
bool by_stack_distances(const LoadedTrace& trace, const cache::KernelOptions& kernel) {
  if (kernel.eviction != cache::EvictionPolicy::kLru ||
      kernel.admission.policy != cache::AdmissionPolicy::kAlways || kernel.shards != 1 ||
      kernel.max_object_bytes != 0 || trace.with_ttl != 0) {
    return false;
  }
  const std::uint64_t largest = trace.objects.largest_bytes() + kernel.entry_overhead_bytes;
  return trace.rate() < 1 || (trace.objects.shrinks() == 0 &&
                              kernel.capacity_bytes >= std::max<std::uint64_t>(1, largest));
}

Result<void> run_stack(const LoadedTrace& trace, std::vector<CurvePoint*> points,
                       const RunOptions& options, Monitor& monitor) {
  std::ranges::sort(points, {}, [](const CurvePoint* p) { return p->kernel.capacity_bytes; });
  LruCurveOptions curve{.cache_bytes = {},
                        .entry_overhead_bytes = points.front()->kernel.entry_overhead_bytes};
  for (const CurvePoint* point : points) {
    curve.cache_bytes.push_back(point->kernel.capacity_bytes);
  }
  auto runs = make_sample_runs<LruCurve>(trace.rate(),
                                         [&](double rate) -> Result<std::unique_ptr<LruCurve>> {
                                           curve.rate = rate;
                                           return std::make_unique<LruCurve>(curve);
                                         });
  if (!runs) {
    return std::unexpected(runs.error());
  }
  const LoadedTrace::WarmedUp warmed_up = trace.after(options.warmup_requests);
  monitor.begin("stack distances", trace.requests.size());
  const auto fed = feed_trace(trace, warmed_up.sample_requests, *runs, monitor);
  if (!fed) {
    return std::unexpected(fed.error());
  }
  const std::vector<ReplayCounts> whole = runs->whole->counts();
  std::vector<std::vector<ReplayCounts>> parts;
  for (const auto& part : runs->parts) {
    parts.push_back(part->counts());
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<ReplayCounts> of_parts;
    for (const std::vector<ReplayCounts>& part : parts) {
      of_parts.push_back(part[i]);
    }
    const SampledFrom from = *fed ? warmed_up.from : seen_by(whole[i], trace.rate());
    points[i]->requests = estimated_counts(whole[i], from).requests;
    points[i]->ratios = estimated_hit_ratios(whole[i], of_parts, from);
  }
  return {};
}

}  // namespace

Result<std::vector<CurvePoint>> run_curves(const LoadedTrace& trace,
                                           const std::vector<PlannedRun>& plan,
                                           const RunOptions& options, Monitor& monitor) {
  if (auto fits = check_largest(trace.objects.largest_bytes(), plan, trace.footprint_bytes());
      !fits) {
    return std::unexpected(fits.error());
  }
  std::vector<CurvePoint> points;
  for (const PlannedRun& planned : plan) {
    CurvePoint point{.kernel = planned.options.kernel, .ratios = {}};
    point.kernel.capacity_bytes = capacity_of(planned, trace.footprint_bytes());
    point.by_stack_distances = by_stack_distances(trace, point.kernel);
    points.push_back(point);
  }
  std::vector<CurvePoint*> stacked;
  std::vector<CurvePoint*> simulated;
  std::vector<PlannedRun> simulations;
  for (std::size_t i = 0; i < points.size(); ++i) {
    (points[i].by_stack_distances ? stacked : simulated).push_back(&points[i]);
    if (!points[i].by_stack_distances) {
      simulations.push_back(plan[i]);
    }
  }
  if (!stacked.empty()) {
    if (auto ran = run_stack(trace, stacked, options, monitor); !ran) {
      return std::unexpected(ran.error());
    }
  }
  const auto runs = run_held(trace, simulations, options, monitor);
  if (!runs) {
    return std::unexpected(runs.error());
  }
  for (std::size_t i = 0; i < simulated.size(); ++i) {
    simulated[i]->requests = (*runs)[i].counts.requests;
    simulated[i]->ratios = (*runs)[i].ratios;
  }
  return points;
}

}  // namespace encore::sim
