#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/units.h"
#include "sim/report/report.h"

namespace encore::sim {
namespace {

std::string print(const char* format, double value) {
  std::array<char, 64> out{};
  std::snprintf(out.data(), out.size(), format, value);
  return out.data();
}

std::string show_real(double value, Style style) {
  if (!std::isfinite(value)) {
    return "-";
  }
  switch (style) {
    case Style::kRate:
      return value != 0 && std::abs(value) < 0.0001 ? print("%.3e", value) : print("%.6f", value);
    case Style::kPercent:
      return print("%.3f %%", 100 * value);
    case Style::kBytes:
      return format_bytes(static_cast<std::uint64_t>(std::max(0.0, value)));
    case Style::kCount:
      return print("%.0f", value);
    default:
      return print("%.2f", value);
  }
}

struct Shown {
  Style style;
  std::string operator()(std::monostate) const { return "-"; }
  std::string operator()(bool value) const { return value ? "yes" : "no"; }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(const Row& row) const { return std::to_string(row.size()) + " fields"; }
  std::string operator()(const std::vector<Row>& rows) const {
    return std::to_string(rows.size()) + " rows";
  }
  std::string operator()(double value) const { return show_real(value, style); }
  std::string operator()(std::uint64_t value) const {
    return style == Style::kBytes ? format_bytes(value) : std::to_string(value);
  }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
};

std::string show(const Row& row, const Column& column) {
  const Value* value = find(row, column.key);
  return value == nullptr ? "-" : std::visit(Shown{column.style}, *value);
}

void append_line(std::string& out, const Table& table, const std::vector<std::size_t>& widths,
                 const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string pad(widths[i] - cells[i].size(), ' ');
    line += i == 0 ? "" : "  ";
    line += table.columns[i].style == Style::kText ? cells[i] + pad : pad + cells[i];
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

void append_table(std::string& out, const Table& table) {
  if (table.rows.empty() || table.columns.empty()) {
    return;
  }
  out += table.title.empty() ? "" : table.title + "\n";
  std::vector<std::vector<std::string>> lines(1);
  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) {
    lines.front().push_back(column.heading);
    widths.push_back(column.heading.size());
  }
  for (const Row& row : table.rows) {
    std::vector<std::string>& cells = lines.emplace_back();
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      cells.push_back(show(row, table.columns[i]));
      widths[i] = std::max(widths[i], cells[i].size());
    }
  }
  for (const auto& cells : lines) {
    append_line(out, table, widths, cells);
  }
  out += "\n";
}

}  // namespace

const Value* find(const Row& row, std::string_view key) {
  const auto at = std::ranges::find(row, key, &Field::key);
  return at == row.end() ? nullptr : &at->value;
}

std::string to_text(const Report& report) {
  std::string out;
  for (const Table& table : report.tables) {
    append_table(out, table);
  }
  for (const std::string& note : report.notes) {
    out += note + "\n";
  }
  out += report.paste.empty() ? "" : "\n" + report.paste;
  return out;
}

std::string machine_text(const Report& report) {
  std::string line;
  for (const Field& field : report.machine) {
    if (std::holds_alternative<std::vector<Row>>(field.value) ||
        std::holds_alternative<Row>(field.value)) {
      continue;
    }
    const bool bytes = field.key.ends_with("_bytes");
    line += line.empty() ? "" : ", ";
    line += field.key + " " + std::visit(Shown{bytes ? Style::kBytes : Style::kReal}, field.value);
  }
  // Lists of several rows as tables: their first row's keys are the headings.
  for (const Field& field : report.machine) {
    const auto* rows = std::get_if<std::vector<Row>>(&field.value);
    if (rows == nullptr || rows->size() < 2) {
      continue;
    }
    Table table{.key = field.key, .title = "", .columns = {}, .rows = *rows};
    for (const Field& first : rows->front()) {
      const bool text = std::holds_alternative<std::string>(first.value);
      const bool bytes = first.key.ends_with("_bytes");
      table.columns.push_back({first.key, first.key,
                               text    ? Style::kText
                               : bytes ? Style::kBytes
                                       : Style::kReal});
    }
    line += "\n";
    append_table(line, table);
    line.pop_back();
    line.pop_back();
  }
  return line;
}

}  // namespace encore::sim
