#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/report/report.h"

namespace encore::sim {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Row& row);

Json to_json(const std::vector<Row>& rows) {
  Json list = Json::array();
  for (const Row& row : rows) {
    list.push_back(to_json(row));
  }
  return list;
}

struct ValueToJson {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(double value) const { return std::isfinite(value) ? Json(value) : Json(nullptr); }
  Json operator()(const Row& row) const { return to_json(row); }
  Json operator()(const std::vector<Row>& rows) const { return to_json(rows); }
  template <typename T>
  Json operator()(const T& value) const {
    return Json(value);
  }
};

Json to_json(const Row& row) {
  Json object = Json::object();
  for (const Field& field : row) {
    object[field.key] = std::visit(ValueToJson{}, field.value);
  }
  return object;
}

// Far more than a report has, and far less than the stack holds.
constexpr int kDepthMax = 32;

Result<Row> row_of(const Json& object, int depth);

Result<Value> value_of(const Json& json, int depth) {
  if (json.is_null()) return Value{};
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned()) return json.get<std::uint64_t>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_object()) return row_of(json, depth + 1);
  // Notes are texts for people.
  if (!json.empty() && json.front().is_string()) return Value{};
  std::vector<Row> rows;
  for (const Json& each : json) {
    auto row = row_of(each, depth + 1);
    if (!row) return std::unexpected(row.error());
    rows.push_back(std::move(*row));
  }
  return rows;
}

Result<Row> row_of(const Json& object, int depth) {
  if (!object.is_object() || depth > kDepthMax) {
    return fail(depth > kDepthMax ? "nested too deeply" : "not an object");
  }
  Row row;
  for (const auto& [key, json] : object.items()) {
    auto value = value_of(json, depth);
    if (!value) return fail("\"" + key + "\": " + value.error().message);
    row.push_back({key, std::move(*value)});
  }
  return row;
}

}  // namespace

std::string to_json_line(const Row& row) {
  return to_json(row).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Row> row_of_json(std::string_view text) {
  // The parser itself needs no stack for depth, but what it makes is taken apart by recursion.
  const Json document = Json::parse(
      text,
      [](int depth, Json::parse_event_t /*event*/, Json& /*part*/) { return depth <= kDepthMax; },
      false);
  if (document.is_discarded()) {
    return fail("not JSON");
  }
  return row_of(document, 0);
}

std::string to_json(const Report& report, const JsonOptions& options) {
  Json document;
  document["schema"] = kReportSchema;
  document["command"] = report.command;
  document["version"] = ENCORE_VERSION;
  document["seed"] = report.seed;
  document["interrupted"] = report.interrupted;
  document["parameters"] = to_json(report.parameters);
  document["rows"] = Json::array();
  for (const Table& table : report.tables) {
    document[table.key] = to_json(table.rows);
  }
  if (!report.notes.empty()) {
    document["notes"] = report.notes;
  }
  if (!report.paste.empty()) {
    document["paste"] = report.paste;
  }
  if (options.machine) {
    document["machine"] = to_json(report.machine);
  }
  // Names from a trace may hold any bytes.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace encore::sim
