#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/report/chart_js.h"
#include "sim/report/panels.h"
#include "sim/report/report.h"
#include "tests/catch.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

Report small_report() {
  Report report;
  report.command = "blocks";
  report.seed = 7;
  report.parameters = {{"bits", std::uint64_t{16}}, {"name", std::string("a<b</script>")}};
  report.tables.push_back({.key = "rows",
                           .title = "A table",
                           .columns = {{"k", "k", Style::kCount}, {"p", "rate", Style::kRate}},
                           .rows = {{{"k", std::uint64_t{1}}, {"p", 0.5}},
                                    {{"k", std::uint64_t{10}}, {"p", Value{}}}}});
  report.machine = {{"seconds", 1.5}};
  report.charts.push_back(
      {.title = "</script><b>",
       .x_label = "x",
       .y_label = "it's",
       .series = {{.name = "s",
                   .points = {{.x = 1, .y = 2, .low = 1, .high = 3},
                              {.x = 2, .y = std::numeric_limits<double>::infinity()}}}}});
  return report;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("The JSON has the fixed keys, and no machine part when not wanted", "[sim][report]") {
  const std::string json = to_json(small_report(), {.machine = true});
  for (const char* key : {"\"command\": \"blocks\"", "\"version\"", "\"seed\": 7", "\"parameters\"",
                          "\"rows\"", "\"machine\"", "\"p\": null"}) {
    INFO(key);
    CHECK(json.find(key) != std::string::npos);
  }
  CHECK(to_json(small_report(), {.machine = false}).find("machine") == std::string::npos);
}

// The words of JSON Schema for a value's type.
std::string type_of(const nlohmann::json& value) {
  return value.is_null()             ? "null"
         : value.is_boolean()        ? "boolean"
         : value.is_number_integer() ? "integer"
         : value.is_number()         ? "number"
         : value.is_string()         ? "string"
         : value.is_array()          ? "array"
                                     : "object";
}

void check_fields(const nlohmann::json& fields, const nlohmann::json& schema) {
  for (const auto& [key, value] : fields.items()) {
    INFO(key);
    const bool numbered =
        key.starts_with('k') && key.find_first_not_of("0123456789", 1) == std::string::npos;
    if (numbered && schema.contains("patternProperties")) {
      continue;
    }
    REQUIRE(schema["properties"].contains(key));
    if (!schema["properties"][key].contains("type")) {
      CHECK(value == schema["properties"][key]["const"]);
      continue;
    }
    const nlohmann::json& types = schema["properties"][key]["type"];
    const std::string type = type_of(value);
    const auto is = [&](const std::string& name) {
      return types.is_array() ? std::find(types.begin(), types.end(), name) != types.end()
                              : types == name;
    };
    CHECK((is(type) || (type == "integer" && is("number"))));
  }
}

TEST_CASE("Every key of the JSON is in its schema, with its type", "[sim][report]") {
  const auto schema = nlohmann::json::parse(
      read_file(std::string(ENCORE_SOURCE_DIR) + "/docs/encore-sim.schema.json"));
  CHECK(schema["properties"]["schema"]["const"] == kReportSchema);
  const std::string trace = (std::filesystem::temp_directory_path() /
                             ("encore_keys_" + std::to_string(::getpid()) + ".csv"))
                                .string();
  const std::string blocks = "blocks --events 2000 --block-size 16 --hashes 2";
  for (const std::string& line : {"generate zipf --requests 2000 -o " + trace,
                                  blocks,
                                  blocks + " --filter pair --capacity 200",
                                  blocks + " --compare structures",
                                  blocks + " --compare hashes",
                                  std::string("theory fill"),
                                  std::string("theory size"),
                                  std::string("theory capacity"),
                                  std::string("theory table --hashes 1,2"),
                                  std::string("theory pair"),
                                  std::string("theory ring"),
                                  std::string("theory layouts"),
                                  std::string("theory codes --filters 2 --tests 10"),
                                  std::string("theory kinds"),
                                  std::string("theory scalable"),
                                  std::string("theory counting"),
                                  std::string("theory union"),
                                  "stats " + trace,
                                  "convert " + trace + " --as lcs -o " + trace + ".lcs",
                                  "replay --interval 1000 " + trace,
                                  "replay --parts 3 " + trace,
                                  "replay --bounds " + trace,
                                  "replay --mrc 2 " + trace,
                                  "replay --sample 0.5 " + trace,
                                  "replay --disk-size 64MiB " + trace,
                                  "replay --admission proxy-probation --disk-size 64MiB " + trace,
                                  "tune " + trace,
                                  "tune --disk-size 64MiB " + trace}) {
    INFO(line);
    const Ran ran = run(line + " --json");
    REQUIRE(ran.exit_code == 0);
    const auto report = nlohmann::json::parse(ran.out);
    check_fields(report, schema);
    check_fields(report["parameters"], schema["properties"]["parameters"]);
    check_fields(report["machine"], schema["properties"]["machine"]);
    for (const auto& [key, part] : report.items()) {
      if (part.is_array() && part.front().is_object()) {
        INFO(key);
        for (const auto& row : part) {
          check_fields(row, schema["$defs"][key]);
        }
      }
    }
  }
  std::filesystem::remove(trace);
  std::filesystem::remove(trace + ".lcs");
}

TEST_CASE("The text has aligned columns, and - for what is not there", "[sim][report]") {
  CHECK(to_text(small_report()) ==
        "A table\n"
        " k      rate\n"
        " 1  0.500000\n"
        "10         -\n"
        "\n");
}

TEST_CASE("The page holds everything itself, and no text ends its script", "[sim][report]") {
  if (chart_js().empty()) {
    WARN("skipped: built without Chart.js");
    CHECK(!to_html(small_report(), {}));
    return;
  }
  const auto page = to_html(small_report(), {});
  REQUIRE(page);
  CHECK(page->find("src=") == std::string::npos);
  CHECK(page->find("a&lt;b&lt;/script&gt;") != std::string::npos);
  CHECK(page->find("<\\/script><b>") != std::string::npos);
  std::size_t ends = 0;
  for (std::size_t at = page->find("</script>"); at != std::string::npos;
       at = page->find("</script>", at + 1)) {
    ++ends;
  }
  CHECK(ends == 2);
}

TEST_CASE("The page says how to repeat the run, and without a command line nothing of it",
          "[sim][report]") {
  if (chart_js().empty()) {
    WARN("skipped: built without Chart.js");
    return;
  }
  Report report = small_report();
  CHECK(to_html(report, {})->find("This run") == std::string::npos);
  report.provenance = {
      .command_line = "encore-sim replay 'a<b'",
      .files = {{{"file", std::string("a<b")},
                 {"bytes", std::uint64_t{7}},
                 {"sha256", std::string("12ab")}},
                {{"file", std::string("-")}, {"bytes", Value{}}, {"sha256", Value{}}}},
      .machine = {{"processor", std::string("a processor")}}};
  const auto page = to_html(report, {.machine = true});
  REQUIRE(page);
  for (const char* part :
       {"<th>program</th><td>encore-sim " ENCORE_VERSION "<", "<td>encore-sim replay 'a&lt;b'<",
        "<th>data: a&lt;b</th><td>7 bytes, SHA-256 12ab<", "<th>data: -</th><td>no regular file",
        "<th>seed</th><td>7<", "<td>a processor<",
        "sha256sum -c &lt;&lt;'END'\n12ab  a&lt;b\nEND\nencore-sim replay 'a&lt;b'\n"}) {
    INFO(part);
    CHECK(page->find(part) != std::string::npos);
  }
  CHECK(to_html(report, {.machine = false})->find("a processor") == std::string::npos);
  report.provenance.is_complete = false;
  const auto given = to_html(report, {});
  CHECK(given->find("only that program can repeat the run") != std::string::npos);
  CHECK(given->find("sha256sum") == std::string::npos);
}

TEST_CASE("A real browser draws the plots", "[sim][report]") {
  if (chart_js().empty() || std::system("command -v chromium >/dev/null 2>&1") != 0) {
    WARN("skipped: no chromium, or built without Chart.js");
    return;
  }
  const auto directory =
      std::filesystem::temp_directory_path() / ("encore_report_" + std::to_string(::getpid()));
  std::filesystem::create_directory(directory);
  const std::string page = (directory / "report.html").string();
  REQUIRE(run("blocks --events 20000 --block-size 16 --hashes 2,4 --html " + page).exit_code == 0);
  const std::string dom = (directory / "dom.html").string();
  const std::string command =
      "timeout 60 chromium --headless=new --no-sandbox --disable-gpu "
      "--user-data-dir=" +
      (directory / "profile").string() + " --dump-dom file://" + page + " >" + dom + " 2>/dev/null";
  CHECK(std::system(command.c_str()) == 0);
  // The script sets this when the last plot stands.
  CHECK(read_file(dom).find("data-drawn=\"1\"") != std::string::npos);
  std::filesystem::remove_all(directory);
}

TEST_CASE("A chart of many series becomes panels of eight with the same axes", "[sim][report]") {
  Chart chart{.title = "Misses", .x_label = "x", .y_label = "y", .series = {}};
  const std::array<std::string, 5> evictions = {"lru", "sieve", "arc", "lhd", "s3-fifo"};
  for (std::size_t i = 0; i < 35; ++i) {
    const auto x = static_cast<double>(i + 1);
    chart.series.push_back({.name = evictions.at(i / 7) + ", admission " + std::to_string(i),
                            .points = {{.x = x, .y = 2 * x}, {.x = x + 1, .y = x}}});
  }
  const std::vector<Panel> panels = panels_of(chart);
  REQUIRE(panels.size() == 5);  // one for each eviction
  for (const Panel& panel : panels) {
    CHECK(panel.chart.series.size() == 7);
    CHECK(panel.shares_axes);
    CHECK(panel.x.high == 36);
    CHECK(panel.y.high == 70);
  }
  CHECK(panels[1].chart.title == "Misses (2 of 5)");
  CHECK(panels[1].chart.series.front().name == "sieve, admission 7");
  Report report = small_report();
  report.charts = {chart};
  const std::string script = to_gnuplot(report, "svg", "x.svg");
  CHECK(script.find("set multiplot layout 5,1") != std::string::npos);
  CHECK(script.find("set yrange [1:70]") != std::string::npos);
  // One family that is larger than a panel, and few series as they are.
  for (Series& series : chart.series) {
    series.name = "lru";
  }
  CHECK(panels_of(chart).size() == 5);
  CHECK(panels_of(chart).front().chart.series.size() == 8);
  chart.series.resize(8);
  REQUIRE(panels_of(chart).size() == 1);
  CHECK(panels_of(chart).front().chart.title == "Misses");
  CHECK_FALSE(panels_of(chart).front().shares_axes);
}

TEST_CASE("gnuplot draws what it is given, and a place that cannot be written is said",
          "[sim][report]") {
  const std::string script = to_gnuplot(small_report(), "svg", "/tmp/it's");
  CHECK(script.find("set output '/tmp/it''s'") != std::string::npos);
  CHECK(script.find("$d0 using 1:3:4 with filledcurves") != std::string::npos);
  CHECK(run("theory fill --svg /nonexistent/x.svg").exit_code == 2);
  CHECK(run("theory fill --html /nonexistent/x.html").exit_code == 2);
  CHECK(run("theory size --svg /tmp/none.svg").exit_code == 2);
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) {
    WARN("skipped: no gnuplot");
    return;
  }
  const auto path = std::filesystem::temp_directory_path() /
                    ("encore_report_" + std::to_string(::getpid()) + ".svg");
  CHECK(run("theory fill --svg " + path.string()).exit_code == 0);
  CHECK(read_file(path.string()).find("</svg>") != std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace encore::sim
