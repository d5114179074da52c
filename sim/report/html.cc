#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/html.h"
#include "sim/report/chart_js.h"
#include "sim/report/panels.h"

namespace encore::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>encore-sim</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#222}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
pre{background:#f5f5f2;padding:1rem;overflow-x:auto;font-size:13px}
.run th{text-align:left;vertical-align:top;font-weight:600;padding-right:1rem;white-space:nowrap}
.run td{overflow-wrap:anywhere}
.chart{height:24rem;margin:1rem 0 2rem}
</style></head><body>
)";

// Draws the charts from the data above it; intervals are drawn by a small plugin of its own: a band
// along a line, bars at marks.
constexpr std::string_view kScript = R"(
const colours=['#3366aa','#cc5533','#338855','#885599','#aa8822','#22889a','#aa3366','#555555'];
const intervals={id:'intervals',afterDatasetsDraw(chart){
 const c=chart.ctx;
 chart.data.datasets.forEach((set,i)=>{
  if(!chart.isDatasetVisible(i))return;
  const at=chart.scales,known=set.data.filter(p=>p.low<p.high);
  if(set.showLine&&known.length){
   c.save();c.globalAlpha=0.2;c.fillStyle=set.borderColor;c.beginPath();
   for(const p of known)c.lineTo(at.x.getPixelForValue(p.x),at.y.getPixelForValue(p.low));
   for(const p of known.reverse())c.lineTo(at.x.getPixelForValue(p.x),at.y.getPixelForValue(p.high));
   c.closePath();c.fill();c.restore();return;
  }
  c.strokeStyle=set.borderColor;c.lineWidth=1.5;
  for(const p of known){
   const x=at.x.getPixelForValue(p.x);
   const a=at.y.getPixelForValue(p.low),b=at.y.getPixelForValue(p.high);
   c.beginPath();c.moveTo(x,a);c.lineTo(x,b);
   c.moveTo(x-4,a);c.lineTo(x+4,a);c.moveTo(x-4,b);c.lineTo(x+4,b);c.stroke();
  }});}};
for(const [i,chart] of charts.entries()){
 const known=chart.series.flatMap(s=>s.points).filter(p=>p.low<p.high);
 const room=known.length?{suggestedMin:Math.min(...known.map(p=>p.low)),
  suggestedMax:Math.max(...known.map(p=>p.high))}:{};
 new Chart(document.getElementById('chart'+i),{type:'scatter',plugins:[intervals],
  data:{datasets:chart.series.map((s,j)=>({label:s.name,data:s.points,showLine:s.line,
   pointRadius:s.line&&s.points.length>40?0:4,borderColor:colours[j%8],
   backgroundColor:colours[j%8],borderWidth:2}))},
  options:{animation:false,maintainAspectRatio:false,
   plugins:{title:{display:true,text:chart.title}},
   scales:{x:{...chart.x,type:chart.log_x?'logarithmic':'linear',title:{display:true,text:chart.x_label}},
    y:{...room,...chart.y,title:{display:true,text:chart.y_label}}}}});
}
document.body.dataset.drawn=charts.length;
)";

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json axis(const Panel& panel, const Axis& values) {
  return panel.shares_axes ? Json{{"min", values.low}, {"max", values.high}} : Json::object();
}

Json charts_json(const std::vector<Panel>& panels) {
  Json all = Json::array();
  for (const Panel& panel : panels) {
    const Chart& chart = panel.chart;
    Json series = Json::array();
    for (const Series& one : chart.series) {
      Json points = Json::array();
      for (const Point& point : one.points) {
        Json p = {{"x", number(point.x)}, {"y", number(point.y)}};
        if (point.low < point.high) {
          p["low"] = point.low;
          p["high"] = point.high;
        }
        points.push_back(std::move(p));
      }
      series.push_back({{"name", one.name}, {"line", one.line}, {"points", std::move(points)}});
    }
    all.push_back({{"title", chart.title},
                   {"x_label", chart.x_label},
                   {"y_label", chart.y_label},
                   {"log_x", chart.log_x},
                   {"x", axis(panel, panel.x)},
                   {"y", axis(panel, panel.y)},
                   {"series", std::move(series)}});
  }
  return all;
}

// JSON inside a script element: "</" would end it.
std::string for_script(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (std::size_t at = text.find("</"); at != std::string::npos; at = text.find("</", at + 3)) {
    text.replace(at, 2, "<\\/");
  }
  return text;
}

std::string line_of(const std::string& name, const std::string& value) {
  return "<tr><th>" + html_escaped(name) + "</th><td>" + html_escaped(value) + "</td></tr>\n";
}

std::string text_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return *text;
  }
  const auto* number = std::get_if<std::uint64_t>(&value);
  return number == nullptr ? "-" : std::to_string(*number);
}

std::string data_of(const Row& file) {
  const Value* const digest = find(file, "sha256");
  const Value* const bytes = find(file, "bytes");
  return digest == nullptr || std::holds_alternative<std::monostate>(*digest)
             ? "no regular file: no digest"
             : text_of(*bytes) + " bytes, SHA-256 " + text_of(*digest);
}

// The lines for a shell: `sha256sum -c` finds another trace than this one.
std::string lines_to_repeat(const Provenance& provenance) {
  std::string sums;
  for (const Row& file : provenance.files) {
    const Value* const digest = find(file, "sha256");
    if (digest != nullptr && std::holds_alternative<std::string>(*digest)) {
      sums += text_of(*digest) + "  " + text_of(*find(file, "file")) + "\n";
    }
  }
  return (sums.empty() ? "" : "sha256sum -c <<'END'\n" + sums + "END\n") + provenance.command_line +
         "\n";
}

void append_run(std::string& page, const Report& report, const JsonOptions& options) {
  const Provenance& run = report.provenance;
  if (run.command_line.empty()) {
    return;
  }
  page += "<h2>This run</h2>\n<table class=\"run\">\n";
  page += line_of("program", "encore-sim " ENCORE_VERSION);
  page += line_of("command line", run.command_line);
  page += line_of("seed", std::to_string(report.seed));
  for (const Row& file : run.files) {
    page += line_of("data: " + text_of(*find(file, "file")), data_of(file));
  }
  if (options.machine) {
    for (const Field& field : run.machine) {
      page += line_of(field.key, text_of(field.value));
    }
  }
  if (!run.is_complete) {
    page +=
        "</table>\n<p>A program gave objects in the place of words: only that program can repeat "
        "the run.</p>\n";
    return;
  }
  page +=
      "</table>\n<p>To repeat it, in the directory of the data; the same data and seed give the "
      "same figures, time and memory aside:</p>\n<pre>" +
      html_escaped(lines_to_repeat(run)) + "</pre>\n";
}

}  // namespace

Result<std::string> to_html(const Report& report, const JsonOptions& options) {
  if (chart_js().empty()) {
    return fail("--html: this encore-sim was built without Chart.js (package libjs-chart.js)");
  }
  std::string page(kHead);
  page += "<h1>encore-sim " + html_escaped(report.command) + "</h1>\n";
  std::vector<Panel> panels;
  for (const Chart& chart : report.charts) {
    for (Panel& panel : panels_of(chart)) {
      panels.push_back(std::move(panel));
    }
  }
  for (std::size_t i = 0; i < panels.size(); ++i) {
    page += "<div class=\"chart\"><canvas id=\"chart" + std::to_string(i) + "\"></canvas></div>\n";
  }
  append_run(page, report, options);
  page += "<h2>Figures</h2>\n<pre>" + html_escaped(to_text(report)) + "</pre>\n";
  page += "<h2>As data</h2>\n<pre>" + html_escaped(to_json(report, options)) + "</pre>\n";
  page += "<script>\n";
  page += chart_js();
  page += "\n</script>\n<script>\nconst charts=" + for_script(charts_json(panels)) + ";";
  page += kScript;
  page += "</script>\n</body></html>\n";
  return page;
}

}  // namespace encore::sim
