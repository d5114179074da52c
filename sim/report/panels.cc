#include "sim/report/panels.h"

#include <algorithm>
#include <limits>
#include <string>

namespace encore::sim {
namespace {

std::string_view family_of(const Series& series) {
  return std::string_view(series.name).substr(0, series.name.find(','));
}

// Returns the end of the panel that begins at `from`.
std::size_t end_of_panel(const std::vector<Series>& series, std::size_t from) {
  const std::size_t most = std::min(from + kPanelSeriesMax, series.size());
  if (most == series.size()) {
    return most;
  }
  // Not amidst a family, unless it has more series than a panel.
  std::size_t end = most;
  while (end > from && family_of(series[end - 1]) == family_of(series[end])) {
    --end;
  }
  return end == from ? most : end;
}

void widen(Axis& axis, double value) {
  axis.low = std::min(axis.low, value);
  axis.high = std::max(axis.high, value);
}

}  // namespace

std::vector<Panel> panels_of(const Chart& chart) {
  if (chart.series.size() <= kPanelSeriesMax) {
    return {{.chart = chart, .x = {}, .y = {}}};
  }
  constexpr double kMost = std::numeric_limits<double>::max();
  Axis x{kMost, -kMost};
  Axis y{kMost, -kMost};
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      widen(x, point.x);
      widen(y, point.y);
      if (point.low < point.high) {
        widen(y, point.low);
        widen(y, point.high);
      }
    }
  }
  std::vector<Panel> panels;
  for (std::size_t from = 0; from < chart.series.size();) {
    const std::size_t end = end_of_panel(chart.series, from);
    Panel panel{.chart = chart, .shares_axes = x.low < x.high && y.low < y.high, .x = x, .y = y};
    panel.chart.series.assign(chart.series.begin() + static_cast<std::ptrdiff_t>(from),
                              chart.series.begin() + static_cast<std::ptrdiff_t>(end));
    panels.push_back(std::move(panel));
    from = end;
  }
  for (std::size_t i = 0; i < panels.size(); ++i) {
    panels[i].chart.title +=
        " (" + std::to_string(i + 1) + " of " + std::to_string(panels.size()) + ")";
  }
  return panels;
}

}  // namespace encore::sim
