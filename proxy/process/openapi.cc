// The description of the admin listener's endpoints, written from their table.
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proxy/http/message.h"
#include "proxy/process/endpoints.h"

namespace encore::server {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

Json schema_of(const EndpointParameter& parameter) {
  Json schema = {{"type", parameter.type}};
  if (!parameter.choices.empty()) schema["enum"] = words_of(parameter.choices);
  if (!parameter.repeated) return schema;
  return {{"type", "array"}, {"items", schema}};
}

Json parameter_json(const EndpointParameter& parameter) {
  Json json = {{"name", parameter.name},
               {"in", "query"},
               {"description", parameter.text},
               {"required", parameter.required},
               {"schema", schema_of(parameter)}};
  if (!parameter.example.empty()) {
    json["example"] =
        parameter.repeated ? Json::array({parameter.example}) : Json(parameter.example);
  }
  return json;
}

// Without parameters of content types: "text/plain; charset=utf-8" is text/plain.
Json content_of(std::string_view type) {
  const std::string_view bare = type.substr(0, type.find(';'));
  const Json schema =
      bare == "application/json" ? Json{{"type", "object"}} : Json{{"type", "string"}};
  return {{std::string(bare), {{"schema", schema}}}};
}

bool has_format(const Endpoint& endpoint) {
  for (const EndpointParameter& each : endpoint.parameters) {
    if (each.name == "format") return true;
  }
  return false;
}

Json responses_json(const Endpoint& endpoint) {
  Json done = content_of(endpoint.content_type);
  if (has_format(endpoint)) {
    done.update(content_of("application/json"));
    done.update(content_of("text/plain"));
  }
  Json responses = {{"200", {{"description", "Done"}, {"content", done}}}};
  for (const std::string_view status : words_of(endpoint.statuses)) {
    unsigned number = 0;
    std::from_chars(status.data(), status.data() + status.size(), number);
    responses[std::string(status)] = {{"description", http::reason_phrase(number)},
                                      {"content", content_of("text/plain")}};
  }
  return responses;
}

Json security_of(EndpointAccess access) {
  const Json token = {{"token", Json::array()}};
  if (access == EndpointAccess::kToken) return Json::array({token});
  if (access == EndpointAccess::kOperator) return Json::array({token, Json::object()});
  return Json::array();
}

Json operation_json(const Endpoint& endpoint) {
  Json parameters = Json::array();
  if (endpoint.path.ends_with("{file}")) {
    parameters.push_back({{"name", "file"},
                          {"in", "path"},
                          {"required", true},
                          {"schema", {{"type", "string"}}},
                          {"example", "links"}});
  }
  for (const EndpointParameter& each : endpoint.parameters) {
    parameters.push_back(parameter_json(each));
  }
  return {{"summary", endpoint.summary},
          {"security", security_of(endpoint.access)},
          {"parameters", parameters},
          {"responses", responses_json(endpoint)}};
}

Json document() {
  Json paths = Json::object();
  for (const Endpoint& endpoint : endpoints()) {
    paths[std::string(endpoint.path)][endpoint.method == "GET" ? "get" : "post"] =
        operation_json(endpoint);
  }
  return {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "Encore: the admin listener"},
        {"version", ENCORE_VERSION},
        {"description",
         "Errors are text: a line with the status, then the reason. Without the security scheme "
         "an endpoint is for admin.allow_clients. With an alternative to the token none is "
         "needed on loopback and on a Unix socket."}}},
      {"servers", Json::array({{{"url", "http://127.0.0.1:3129"}}})},
      {"components",
       {{"securitySchemes",
         {{"token",
           {{"type", "http"},
            {"scheme", "bearer"},
            {"description", "The token of admin.token_file"}}}}}}},
      {"paths", paths}};
}

}  // namespace

const std::string& openapi_json() {
  constexpr int kIndent = 1;
  static const std::string text = document().dump(kIndent) + "\n";
  return text;
}

}  // namespace encore::server
