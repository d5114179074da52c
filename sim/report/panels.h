// Charts as panels that can be read: with more series than there are colours, a chart becomes
// several, all with the same axes. Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/report/report.h"

namespace encore::sim {

inline constexpr std::size_t kPanelSeriesMax = 8;

struct Axis {
  double low = 0;
  double high = 0;
};
struct Panel {
  Chart chart;
  bool shares_axes = false;  // the chart has several panels: use x and y
  Axis x;
  Axis y;
};

// In order, no panel with more than kPanelSeriesMax series. Series whose names begin alike, up to
// the first comma, stay together where they fit.
std::vector<Panel> panels_of(const Chart& chart);

}  // namespace encore::sim
