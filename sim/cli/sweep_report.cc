#include "sim/cli/sweep_report.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "sim/sweep/comparison.h"
#include "sim/sweep/pareto.h"
#include "sim/sweep/statistics.h"

namespace encore::sim {
namespace {

double memory_of(const Row& line) {
  return std::max(number_of(line, "cache_bytes"), number_of(line, "fleet_cache_bytes")) +
         number_of(line, "filter_bytes");
}

Goals goals_of(const Row& line) {
  return {number_of(line, "object_hit_ratio"), number_of(line, "byte_hit_ratio"), -written_of(line),
          -memory_of(line)};
}

// For each line, whether it is on the front of its trace.
std::vector<bool> fronts_of(const std::vector<Row>& lines) {
  std::map<std::string, std::vector<std::size_t>> traces;
  for (std::size_t i = 0; i < lines.size(); ++i) traces[text_of(lines[i], "trace")].push_back(i);
  std::vector<bool> on_front(lines.size(), false);
  for (const auto& [trace, indices] : traces) {
    std::vector<Goals> goals;
    for (const std::size_t i : indices) goals.push_back(goals_of(lines[i]));
    const std::vector<bool> front = pareto_front(goals);
    for (std::size_t j = 0; j < indices.size(); ++j) on_front[indices[j]] = front[j];
  }
  return on_front;
}

Row row_of(const Row& line, bool on_front) {
  Row row;
  for (const Field& field : line) {
    const auto* inner = std::get_if<Row>(&field.value);
    if (field.key == "schema" || field.key == "version") continue;
    if (inner == nullptr) {
      row.push_back(field);
      continue;
    }
    for (const Field& each : *inner) {
      if (find(row, each.key) == nullptr) row.push_back(each);
    }
  }
  row.push_back({"bytes_written_to_device", written_of(line)});
  row.push_back({"pareto", on_front});
  return row;
}

std::vector<Column> columns_of(const Sweep& sweep) {
  std::vector<Column> columns;
  if (sweep.traces.size() > 1) columns.push_back({"trace", "trace"});
  for (const SweptOption& option : sweep.options) {
    if (option.values.size() > 1) columns.push_back({option.name, option.name});
  }
  columns.insert(columns.end(), {{"object_hit_ratio", "hits", Style::kPercent},
                                 {"byte_hit_ratio", "of bytes", Style::kPercent},
                                 {"bytes_written_to_device", "written", Style::kBytes},
                                 {"cache_bytes", "cache", Style::kBytes},
                                 {"filter_bytes", "filter", Style::kBytes},
                                 {"pareto", "on the front"}});
  return columns;
}

Point point_of(const Row& line) {
  return {.x = number_of(line, "object_hit_ratio"), .y = written_of(line)};
}

// Hits against bytes written: from the most hits on, the points with fewer writes than all before.
std::vector<Point> line_of(std::vector<Point> points) {
  std::ranges::stable_sort(
      points, [](const Point& a, const Point& b) { return a.x != b.x ? a.x > b.x : a.y < b.y; });
  std::vector<Point> line;
  for (const Point& point : points) {
    if (line.empty() || point.y < line.back().y) line.push_back(point);
  }
  return line;
}

// A plot for each trace.
void append_fronts(std::vector<Chart>& charts, const std::vector<Row>& lines,
                   const std::vector<bool>& on_front) {
  std::map<std::string, Chart> plots;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string trace = text_of(lines[i], "trace");
    Chart& chart = plots[trace];
    if (chart.series.empty()) {
      chart = {.title = "Pareto front, " + trace,
               .x_label = "object hit ratio",
               .y_label = "bytes written",
               .series = {{.name = "front of hits and bytes written", .points = {}},
                          {.name = "on the front of all four goals", .line = false, .points = {}},
                          {.name = "other runs", .line = false, .points = {}}}};
    }
    const Point point = point_of(lines[i]);
    chart.series[0].points.push_back(point);
    chart.series[on_front[i] ? 1 : 2].points.push_back(point);
  }
  for (auto& [trace, chart] : plots) {
    chart.series[0].points = line_of(std::move(chart.series[0].points));
    charts.push_back(std::move(chart));
  }
}

struct BySeed {
  std::vector<double> hits;
  std::vector<double> byte_hits;
};

// Means over runs that differ in the seed alone; no table where there are none.
void append_means(Report& report, const std::vector<Row>& lines) {
  std::map<std::pair<std::string, std::string>, BySeed> settings;
  bool several = false;
  for (const Row& line : lines) {
    BySeed& one = settings[{text_of(line, "trace"), setting_of(line)}];
    one.hits.push_back(number_of(line, "object_hit_ratio"));
    one.byte_hits.push_back(number_of(line, "byte_hit_ratio"));
    several = several || one.hits.size() > 1;
  }
  if (!several) return;
  Table table{.key = "means",
              .title = "Means over the seeds, with 95 % intervals",
              .columns = {{"trace", "trace"},
                          {"setting", "setting"},
                          {"seeds", "seeds", Style::kCount},
                          {"object_hit_ratio", "hits", Style::kPercent},
                          {"object_hit_ratio_low", "from", Style::kPercent},
                          {"object_hit_ratio_high", "to", Style::kPercent},
                          {"byte_hit_ratio", "of bytes", Style::kPercent},
                          {"byte_hit_ratio_low", "from", Style::kPercent},
                          {"byte_hit_ratio_high", "to", Style::kPercent}},
              .rows = {}};
  for (const auto& [key, one] : settings) {
    const Estimate hits = estimate_mean(one.hits);
    const Estimate bytes = estimate_mean(one.byte_hits);
    table.rows.push_back({{"trace", key.first},
                          {"setting", key.second},
                          {"seeds", std::uint64_t{one.hits.size()}},
                          {"object_hit_ratio", hits.value},
                          {"object_hit_ratio_low", hits.low},
                          {"object_hit_ratio_high", hits.high},
                          {"byte_hit_ratio", bytes.value},
                          {"byte_hit_ratio_low", bytes.low},
                          {"byte_hit_ratio_high", bytes.high}});
  }
  report.tables.push_back(std::move(table));
}

}  // namespace

void fill_sweep_report(Report& report, const Sweep& sweep, const std::vector<Row>& lines) {
  const std::vector<bool> on_front = fronts_of(lines);
  Table table{.key = "rows", .title = {}, .columns = columns_of(sweep), .rows = {}};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    table.rows.push_back(row_of(lines[i], on_front[i]));
  }
  report.tables.push_back(std::move(table));
  append_means(report, lines);
  append_fronts(report.charts, lines, on_front);
}

}  // namespace encore::sim
