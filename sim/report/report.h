// Report: what a command found, as data. It is written as JSON with stable keys, or as tables for
// people. Values; thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace encore::sim {

struct Field;
using Row = std::vector<Field>;  // in the order of its keys
// Nothing (null), and what JSON has. A row, or a list of rows, nests.
using Value = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string,
                           Row, std::vector<Row>>;
struct Field {
  std::string key;
  Value value;
};
const Value* find(const Row& row, std::string_view key);

// How a column shows its numbers to people.
enum class Style : std::uint8_t {
  kText,
  kCount,    // 1234567
  kRate,     // 0.004450
  kPercent,  // 12.34 %
  kReal,     // 1.23
  kBytes,    // 1.5GiB
};
struct Column {
  std::string key;
  std::string heading;
  Style style = Style::kText;
};

struct Table {
  std::string key;    // its name in the JSON: "rows" for the main one
  std::string title;  // printed above it; may be empty
  std::vector<Column> columns;
  std::vector<Row> rows;
};

// A plot: series of points, as a line or as marks, with intervals where low < high: a band along a
// line, bars at marks.
struct Point {
  double x = 0;
  double y = 0;
  double low = 0;
  double high = 0;
};
struct Series {
  std::string name;
  bool line = true;
  std::vector<Point> points;
};
struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_x = false;
  std::vector<Series> series;
};

// The run itself, for the page: how to repeat it.
struct Provenance {
  std::string command_line;  // empty: not known, the page leaves it out
  bool is_complete = true;   // false: a program gave a trace or a policy that no word names
  std::vector<Row> files;    // of the trace: file, bytes, sha256; null where it is no regular file
  Row machine;               // processor, cores, memory, system, compiler
};

struct Report {
  std::string command;
  std::uint64_t seed = 0;
  bool interrupted = false;  // it rests on a part of what was asked for; each row says on how much
  Row parameters;
  std::vector<Table> tables;       // the first one has the key "rows"
  Row machine;                     // time and memory of this run: left out with --no-timing
  std::uint64_t simulated = 0;     // requests over all runs, for the speed; 0: no such thing
  std::vector<std::string> notes;  // sentences below the tables
  std::vector<Chart> charts;       // for to_html and to_gnuplot
  std::string paste;               // a ready text (a config section), shown as it is
  Provenance provenance;           // for to_html
};

// The version of docs/encore-sim.schema.json: another one where a key goes or means something else.
inline constexpr std::uint64_t kReportSchema = 1;

// {"schema", "command", "version", "seed", "interrupted", "parameters", "rows", other tables' keys,
// "notes", "paste", "machine"}, indented, ended by a newline. Numbers that are no numbers become
// null.
struct JsonOptions {
  bool machine = true;
};
std::string to_json(const Report& report, const JsonOptions& options);
// A row as one line of JSON, without the newline; and back, where a list of texts is null. Errors:
// not a JSON object, or one that has lists of anything else but objects.
std::string to_json_line(const Row& row);
Result<Row> row_of_json(std::string_view text);

// Aligned columns under headings, then notes and the ready text.
std::string to_text(const Report& report);
// One self-contained page: tables, notes, interactive plots; program, command line, data and (with
// `machine`) the machine, and how to repeat the run. Errors: built without Chart.js.
Result<std::string> to_html(const Report& report, const JsonOptions& options);
// A script for gnuplot that draws all charts into one file. `terminal` is svg or pngcairo.
// REQUIRES: the report has charts.
std::string to_gnuplot(const Report& report, std::string_view terminal, std::string_view path);
// Time and memory for standard error: a line, and tables of what there is of several parts.
std::string machine_text(const Report& report);

}  // namespace encore::sim
