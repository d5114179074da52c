#include "sim/cli/replay_charts.h"

#include <algorithm>
#include <string>

#include "base/units.h"
#include "sim/cli/kernel_options.h"
#include "sim/cli/replay_rows.h"
#include "sim/replay/ratio.h"

namespace encore::sim {
namespace {

void add(Chart& chart, const std::string& name, bool line, const Point& point) {
  auto at = std::ranges::find(chart.series, name, &Series::name);
  if (at == chart.series.end()) {
    chart.series.push_back({.name = name, .line = line, .points = {}});
    at = chart.series.end() - 1;
  }
  at->points.push_back(point);
}

std::string name_of(const FinishedRun& finished) {
  std::string name = admission_name(finished) + " " + admission_parameter(finished);
  return eviction_name(finished.kernel) + ", " + name;
}

std::string name_of(const cache::KernelOptions& options) {
  std::string name =
      eviction_name(options) + ", " + std::string(to_string(options.admission.policy));
  if (const std::string parameter = admission_parameter(options.admission); !parameter.empty()) {
    name += " " + parameter;
  }
  if (has_window(options.admission.policy)) {
    name += " c=" + std::to_string(options.admission.filter.capacity * options.shards);
  }
  if (has_filter(options.admission.policy)) {
    name += " m=" + std::to_string(options.admission.filter.bits * options.shards);
  }
  return name;
}

double end_of(const ReplayInterval& interval) {
  return static_cast<double>(interval.from_request + interval.counts.requests);
}

Point miss_point(std::uint64_t cache_bytes, const BoundedShare& hits) {
  return {.x = static_cast<double>(cache_bytes),
          .y = 1 - hits.value,
          .low = 1 - hits.high,
          .high = 1 - hits.low};
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
  Chart working_set{.title = "Working set over time",
                    .x_label = "request",
                    .y_label = "different objects in the interval",
                    .series = {}};
  if (!runs.empty()) {
    for (const ReplayInterval& interval : runs.front().run->intervals()) {
      add(working_set, "objects", true,
          {.x = end_of(interval), .y = static_cast<double>(interval.objects_requested)});
    }
  }
  for (const FinishedRun& finished : runs) {
    const cache::KernelOptions& options = finished.kernel;
    const std::string name = finished.run->probation() ? name_of(finished) : name_of(options);
    const BoundedShare& ratio = finished.ratios.objects;
    add(misses, name, true, miss_point(options.capacity_bytes, ratio));
    add(writes, name, false,
        {.x = ratio.value, .y = static_cast<double>(finished.counts.bytes_written)});
    const std::string sized = name + ", " + format_bytes(options.capacity_bytes);
    for (const ReplayInterval& interval : finished.run->intervals()) {
      const double at = end_of(interval);
      add(hits, sized, true,
          {.x = at, .y = ratio_of(interval.counts.hits, interval.counts.requests)});
      if (has_filter(options.admission.policy) || finished.run->probation()) {
        add(fill, sized, true, {.x = at, .y = interval.filter_fill});
      }
    }
  }
  for (Chart* chart : {&misses, &writes, &hits, &fill, &working_set}) {
    if (!chart->series.empty()) {
      charts.push_back(std::move(*chart));
    }
  }
}

void append_curve_charts(std::vector<Chart>& charts, const std::vector<CurvePoint>& points) {
  Chart objects{.title = "Miss ratio by cache size",
                .x_label = "cache, bytes",
                .y_label = "miss ratio",
                .log_x = true,
                .series = {}};
  Chart bytes{.title = "Byte miss ratio by cache size",
              .x_label = "cache, bytes",
              .y_label = "byte miss ratio",
              .log_x = true,
              .series = {}};
  for (const CurvePoint& point : points) {
    const std::string name = name_of(point.kernel);
    add(objects, name, true, miss_point(point.kernel.capacity_bytes, point.ratios.objects));
    add(bytes, name, true, miss_point(point.kernel.capacity_bytes, point.ratios.bytes));
  }
  charts.push_back(std::move(objects));
  charts.push_back(std::move(bytes));
}

}  // namespace encore::sim
