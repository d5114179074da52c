// encore config get.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "config/dump.h"
#include "proxy/cli/session.h"
#include "proxy/process/form.h"

namespace encore::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Value {
  std::string key;
  std::string text;
  Json json;
  bool is_secret = false;
};

Json json_of(const config::ShownValue& shown) {
  if (shown.is_secret) return nullptr;
  Json json = Json::parse(shown.toml, nullptr, false);
  return json.is_discarded() ? Json(shown.text) : json;
}

Outcome<std::vector<Value>> read_file(const Session& session, const std::string& key) {
  const auto config = session.config();
  if (!config) return std::unexpected(config.error());
  const auto shown = config::show_config(*config, key);
  if (!shown) return std::unexpected(Failure{Exit::kUsage, shown.error().message});
  std::vector<Value> values;
  for (const config::ShownValue& each : *shown) {
    values.push_back({each.path, each.text, json_of(each), each.is_secret});
  }
  return values;
}

Outcome<std::vector<Value>> ask(Session& session, const std::string& key) {
  std::string query;
  server::append_form("key", key, query);
  auto answer = session.ask({.target = "/api/config?" + query});
  if (!answer) return std::unexpected(answer.error());
  const Json json = Json::parse(*answer, nullptr, false);
  if (!json.is_object() || !json.contains("values")) {
    return std::unexpected(Failure{Exit::kRefused, "the response is none of encore's"});
  }
  std::vector<Value> values;
  for (const Json& each : json["values"]) {
    values.push_back({each.value("key", ""), each.value("text", ""), each.value("value", Json()),
                      each.value("secret", false)});
  }
  return values;
}

}  // namespace

// One value stands alone, for scripts too; several are lines "key = value".
Exit run_config_get(Session& session) {
  const std::string key = session.text("KEY");
  const auto values = session.has("--offline") ? read_file(session, key) : ask(session, key);
  if (!values) return session.fail_with(values.error());
  if (session.has("--json")) {
    Json json = Json::object();
    for (const Value& each : *values) json[each.key] = each.json;
    session.out() << json.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
    return Exit::kDone;
  }
  const bool is_one = values->size() == 1 && values->front().key == key;
  for (const Value& each : *values) {
    const std::string text = each.is_secret ? "(secret, not shown)" : each.text;
    const std::string line = (is_one ? "" : each.key + " = ") + text;
    session.out() << (session.is_terminal() ? printable(line) : line) << "\n";
  }
  return Exit::kDone;
}

}  // namespace encore::cli
