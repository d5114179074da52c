#include "sim/cli/replay_charts.h"

#include <algorithm>
#include <string>

#include "base/units.h"

namespace encore::sim {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void add(Chart& chart, const std::string& name, bool line, const Point& point) {
  auto at = std::ranges::find(chart.series, name, &Series::name);
  if (at == chart.series.end()) {
    chart.series.push_back({.name = name, .line = line, .points = {}});
    at = chart.series.end() - 1;
  }
  at->points.push_back(point);
}

std::string name_of(const cache::KernelOptions& options) {
  std::string name = std::string(to_string(options.eviction)) + ", " +
                     std::string(to_string(options.admission.policy));
  if (options.admission.policy == cache::AdmissionPolicy::kSecondHit) {
    name += " c=" + std::to_string(options.admission.filter.capacity * options.shards) +
            " m=" + std::to_string(options.admission.filter.bits * options.shards);
  }
  return name;
}

}  // namespace

void append_replay_charts(std::vector<Chart>& charts, const std::vector<FinishedRun>& runs) {
  Chart misses{.title = "Miss ratio by cache size",
               .x_label = "cache, bytes",
               .y_label = "miss ratio",
               .log_x = true,
               .series = {}};
  Chart writes{.title = "Bytes written against hits",
               .x_label = "object hit ratio",
               .y_label = "bytes written",
               .series = {}};
  Chart hits{.title = "Hits over time", .x_label = "request", .y_label = "hit ratio", .series = {}};
  Chart fill{.title = "Fill and rotation of the filter over time",
             .x_label = "request",
             .y_label = "fill of the current generation",
             .series = {}};
  for (const FinishedRun& finished : runs) {
    const ReplayCounts& c = finished.run->counts();
    const cache::KernelOptions& options = finished.run->options().kernel;
    const std::string name = name_of(options);
    const double ratio = share(c.hits, c.requests);
    add(misses, name, true, {.x = static_cast<double>(options.capacity_bytes), .y = 1 - ratio});
    add(writes, name, false, {.x = ratio, .y = static_cast<double>(c.bytes_written)});
    const std::string sized = name + ", " + format_bytes(options.capacity_bytes);
    for (const ReplayInterval& interval : finished.run->intervals()) {
      const auto at = static_cast<double>(interval.from_request + interval.counts.requests);
      add(hits, sized, true, {.x = at, .y = share(interval.counts.hits, interval.counts.requests)});
      if (options.admission.policy == cache::AdmissionPolicy::kSecondHit) {
        add(fill, sized, true, {.x = at, .y = interval.filter_fill});
      }
    }
  }
  for (Chart* chart : {&misses, &writes, &hits, &fill}) {
    if (!chart->series.empty()) {
      charts.push_back(std::move(*chart));
    }
  }
}

}  // namespace encore::sim
