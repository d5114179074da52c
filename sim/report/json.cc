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

}  // namespace

std::string to_json(const Report& report, const JsonOptions& options) {
  Json document;
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
