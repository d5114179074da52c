#include "proxy/process/admin_pages.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "config/dump.h"
#include "proxy/http/message.h"
#include "proxy/observe/fleet_metrics.h"
#include "proxy/observe/shadow_pages.h"
#include "proxy/process/admin_access.h"
#include "proxy/process/admin_reply.h"
#include "proxy/process/explain_page.h"
#include "proxy/process/form.h"
#include "proxy/process/live_page.h"
#include "proxy/process/status_text.h"
#include "proxy/process/styled_page.h"

namespace encore::server {
namespace {

constexpr std::string_view kFilters = "/filters";

AdminResponse read_rejected(ProcessControl& process, std::string_view query) {
  const Snapshot snapshot = process.snapshot();
  if (!snapshot.intercept) {
    return reply(404, "404 Not Found\nintercept.hosts is empty: no host is decrypted.\n");
  }
  if (query == "format=text") return reply(200, rejected_text(*snapshot.intercept));
  return json_reply(rejected_json(*snapshot.intercept));
}

// The fields of a request as the rules of HTTP read them. Views into `request`.
http::RequestHead head_of(const AdminRequest& request) {
  http::RequestHead head;
  head.method_text = request.method;
  head.method = http::classify_method(request.method);
  head.target = request.path;
  for (const auto& [name, value] : request.fields) head.fields.add(name, value);
  return head;
}

}  // namespace

bool is_published(const ProcessControl& process, std::string_view path) {
  return process.published() != nullptr && path.starts_with(kFilters) &&
         path.substr(kFilters.size()).starts_with('/');
}

AdminResponse read_published(ProcessControl& process, const AdminRequest& request) {
  publish::Answer answer =
      process.published()->answer(head_of(request), kFilters, request.path, wall_now());
  AdminResponse response;
  response.status = answer.status;
  response.content_type = std::move(answer.content_type);
  response.fields = std::move(answer.fields);
  response.fields.emplace_back("X-Content-Type-Options", "nosniff");
  response.body = std::move(answer.body);
  return response;
}

namespace {

AdminResponse read_live_page() {
  const LivePage& page = live_page();
  auto response = reply(200, "");
  response.content_type = "text/html; charset=utf-8";
  response.shared_body = page.html;
  response.fields.emplace_back("Content-Security-Policy", page.security_policy);
  response.fields.emplace_back("Referrer-Policy", "no-referrer");
  response.fields.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
  response.fields.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  return response;
}

// "NAME=NUMBER", or nothing where there is no query. Errors: it is neither.
Result<std::optional<std::int64_t>> read_number(std::string_view query, std::string_view name) {
  if (query.empty()) return std::nullopt;
  std::int64_t number = 0;
  const std::string_view digits = query.substr(std::min(name.size() + 1, query.size()));
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_named = query.starts_with(name) && query.substr(name.size()).starts_with('=');
  if (!is_named || status != std::errc{} || end != digits.data() + digits.size()) {
    return fail(std::string(query));
  }
  return number;
}

AdminResponse read_numbers(ProcessControl& process, const AdminRequest& request) {
  const auto given = read_number(request.query, "since");
  if (!given) return bad_query(request.query, "since= and milliseconds since 1970");
  const std::int64_t since = given->value_or(0);
  if (request.path == "/api/history")
    return json_reply(process.live().history().json(since) + "\n");
  const Snapshot snapshot = process.snapshot();
  LiveStatus live = process.live().status(snapshot);
  live.token_needed = AdminAccess::needs_token(request);
  return json_reply(live_json(live, snapshot, process.status(), process.live().history(), since));
}

AdminResponse read_outcome(ProcessControl& process, std::string_view query) {
  constexpr std::string_view kName = "name=";
  const std::string_view name = query.substr(std::min(kName.size(), query.size()));
  const auto found = std::ranges::find(kOutcomeNames, name);
  if (!query.starts_with(kName) || found == kOutcomeNames.end()) {
    return bad_query(query, "name= and an outcome, as in name=first-request");
  }
  const auto index = static_cast<std::size_t>(found - kOutcomeNames.begin());
  const auto outcome = static_cast<Outcome>(index);
  return json_reply(
      outcome_json(outcome, process.snapshot().requests[index], process.live().outcome(outcome)));
}

std::string read_metrics(ProcessControl& process) {
  const Snapshot snapshot = process.snapshot();
  ProcessStatus status = process.status();
  status.ready = process.is_ready();
  status.limits = process.live().status(snapshot).limits;
  return metrics_text(snapshot, status);
}

AdminResponse read_status(ProcessControl& process, std::string_view query) {
  const Snapshot snapshot = process.snapshot();
  LiveStatus live = process.live().status(snapshot);
  if (query == "format=json") return json_reply(status_json(live, snapshot, process.status()));
  return reply(200, status_text(process.config(), live, snapshot, process.status()));
}

AdminResponse read_top(ProcessControl& process, std::string_view query) {
  constexpr std::int64_t kUsual = 10;
  const auto count = read_number(query, "count");
  constexpr auto kMost = static_cast<std::int64_t>(HeavyHitters::kNames);
  if (!count || count->value_or(kUsual) < 0 || count->value_or(kUsual) > kMost) {
    return bad_query(query, "count= and a number up to 64");
  }
  const Snapshot snapshot = process.snapshot();
  return json_reply(top_json(process.live().top(), process.live().status(snapshot), snapshot,
                             process.status(), static_cast<std::size_t>(count->value_or(kUsual))));
}

// TOML writes lists of numbers and of texts as JSON does; of anything else the text is given.
nlohmann::ordered_json value_json(const config::ShownValue& value) {
  if (value.is_secret) return nullptr;
  auto json = nlohmann::ordered_json::parse(value.toml, nullptr, false);
  return json.is_discarded() ? nlohmann::ordered_json(value.text) : json;
}

AdminResponse read_config(ProcessControl& process, std::string_view query) {
  const auto form = read_form(query);
  if (!form) return wrong_request(form.error().message);
  std::string path;
  for (const auto& [name, value] : *form) {
    if (name != "key") return bad_query(query, "key= and a key as cache.memory");
    path = value;
  }
  const auto values = config::show_config(process.config(), path);
  if (!values) return wrong_request(values.error().message);
  auto list = nlohmann::ordered_json::array();
  for (const config::ShownValue& each : *values) {
    list.push_back({{"key", each.path},
                    {"value", value_json(each)},
                    {"text", each.text},
                    {"secret", each.is_secret}});
  }
  const nlohmann::ordered_json out = {{"values", list}};
  return json_reply(out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                    "\n");
}

AdminResponse read_ready(const ProcessControl& process) {
  if (!process.is_ready()) return reply(503, "draining\n");
  const auto fleet = process.status().fleet;
  if (!fleet) return reply(200, "ready\n");
  const std::string late = lateness(*fleet);
  if (fleet->fails_ready) return reply(503, late + "\n");
  return reply(200, late.empty() ? "ready\n" : "ready, but " + late + "\n");
}

AdminResponse read_fleet(const ProcessControl& process) {
  const auto fleet = process.status().fleet;
  if (!fleet)
    return reply(404, "404 Not Found\nfleet.purges is not set: this node is in no fleet.\n");
  return json_reply(fleet_json(*fleet));
}

AdminResponse read_metrics_page(ProcessControl& process) {
  auto response = reply(200, read_metrics(process));
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  return response;
}

AdminResponse read_shadow_page(const ProcessControl& process) {
  constexpr unsigned kRefreshSeconds = 5;
  return make_page({.title = "shadow policies",
                    .body = shadow_html(process.snapshot().shadows),
                    .refresh_seconds = kRefreshSeconds});
}

}  // namespace

AdminResponse read_page(ProcessControl& process, const Endpoint& endpoint,
                        const AdminRequest& request) {
  using enum EndpointId;
  switch (endpoint.id) {
    case kLivePage:
      return read_live_page();
    case kHealth:
      return reply(200, "ok\n");
    case kReady:
      return read_ready(process);
    case kMetrics:
      return read_metrics_page(process);
    case kStats:
      return json_reply(stats_json(process.snapshot(), process.status()));
    case kStatus:
      return read_status(process, request.query);
    case kLive:
    case kHistory:
      return read_numbers(process, request);
    case kOutcome:
      return read_outcome(process, request.query);
    case kExplain:
    case kExplainPage:
      return answer_explain(request,
                            [&process](const Explained& asked) { return process.explain(asked); });
    case kRejected:
      return read_rejected(process, request.query);
    case kFleet:
      return read_fleet(process);
    case kShadow:
      return json_reply(shadow_json(process.snapshot().shadows));
    case kShadowPage:
      return read_shadow_page(process);
    case kTop:
      return read_top(process, request.query);
    case kConfig:
      return read_config(process, request.query);
    case kOpenApi:
      return json_reply(openapi_json());
    default:
      break;
  }
  ENCORE_CHECK(false, "an endpoint that is read has a page");
}

void answer_log(ProcessControl& process, const AdminRequest& request, AdminReply to) {
  const auto from = read_number(request.query, "from");
  if (!from || from->value_or(0) < 0) {
    return to.send(bad_query(request.query, "from= and the `next` of the response before"));
  }
  std::optional<std::uint64_t> number;
  if (*from) number = static_cast<std::uint64_t>(**from);
  process.followers().add(number, std::move(to), monotonic_now());
}

}  // namespace encore::server
