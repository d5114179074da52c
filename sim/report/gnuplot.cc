#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "sim/report/panels.h"

namespace encore::sim {
namespace {

// Between single quotes gnuplot knows one escape: a quote doubled.
std::string gnuplot_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' ? "''" : std::string(1, c == '\n' ? ' ' : c);
  }
  return out + "'";
}

bool has_interval(const Point& point) { return point.low < point.high; }

std::string numbers(const Point& point) {
  std::array<char, 160> line{};
  const bool interval = has_interval(point);
  std::snprintf(line.data(), line.size(), "%.10g %.10g %.10g %.10g\n", point.x, point.y,
                interval ? point.low : point.y, interval ? point.high : point.y);
  return line.data();
}

std::string range(const char* axis, const Axis& values) {
  std::array<char, 96> line{};
  std::snprintf(line.data(), line.size(), "set %srange [%.10g:%.10g]\n", axis, values.low,
                values.high);
  return line.data();
}

// The data of a panel's series as blocks, then the panel. `block` is the next free number.
std::string draw_panel(const Panel& panel, std::size_t& block) {
  const Chart& chart = panel.chart;
  std::string script;
  std::string plot;
  int line = 1;
  for (const Series& series : chart.series) {
    const std::string name = "$d" + std::to_string(block++);
    script += name + " << EOD\n";
    for (const Point& point : series.points) {
      script += numbers(point);
    }
    script += "EOD\n";
    plot += plot.empty() ? "plot " : ", ";
    if (series.line && std::ranges::any_of(series.points, has_interval)) {
      plot += name + " using 1:3:4 with filledcurves fs transparent solid 0.2 noborder lt " +
              std::to_string(line) + " notitle, ";
    }
    plot += name + (series.line ? " using 1:2 with lines lw 2" : " with yerrorbars pt 7 ps 0.6") +
            " lt " + std::to_string(line++) + " title " + gnuplot_text(series.name) + " noenhanced";
  }
  return script + "set title " + gnuplot_text(chart.title) + " noenhanced\nset xlabel " +
         gnuplot_text(chart.x_label) + "\nset ylabel " + gnuplot_text(chart.y_label) + "\n" +
         (chart.log_x ? "set logscale x\n" : "unset logscale x\n") +
         (panel.shares_axes ? range("x", panel.x) + range("y", panel.y)
                            : "set xrange [*:*]\nset yrange [*:*]\n") +
         plot + "\n";
}

}  // namespace

std::string to_gnuplot(const Report& report, std::string_view terminal, std::string_view path) {
  std::vector<Panel> panels;
  for (const Chart& chart : report.charts) {
    for (Panel& panel : panels_of(chart)) {
      panels.push_back(std::move(panel));
    }
  }
  const std::size_t count = panels.size();
  std::string script = "set terminal " + std::string(terminal) + " size 1000," +
                       std::to_string(480 * count) + "\nset output " + gnuplot_text(path) +
                       "\nset grid\nset key outside below vertical maxrows 4\n" +
                       "set multiplot layout " + std::to_string(count) + ",1\n";
  std::size_t block = 0;
  for (const Panel& panel : panels) {
    script += draw_panel(panel, block);
  }
  return script + "unset multiplot\n";
}

}  // namespace encore::sim
