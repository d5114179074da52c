#include "proxy/process/endpoints.h"

#include <algorithm>
#include <array>

namespace encore::server {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kHtml = "text/html; charset=utf-8";
constexpr std::string_view kBytes = "application/octet-stream";
constexpr std::string_view kAny = "*/*";

constexpr std::array kFormat = {
    EndpointParameter{"format", "string", "The form of the response", "json text"}};
constexpr std::array kSince = {EndpointParameter{
    "since", "integer", "Only rows that ended after this time, in milliseconds since 1970"}};
constexpr std::array kOutcome = {EndpointParameter{.name = "name",
                                                   .type = "string",
                                                   .text = "An outcome, as the access log has it",
                                                   .example = "first-request",
                                                   .required = true}};
constexpr std::array kExplain = {
    EndpointParameter{.name = "url",
                      .type = "string",
                      .text = "The URL of the request",
                      .example = "http://site.example/",
                      .required = true},
    EndpointParameter{"method", "string", "Its method; GET if it is left out"},
    EndpointParameter{"client", "string", "The client's address; 127.0.0.1 if it is left out"},
    EndpointParameter{"listener", "string", "The address of the [[listen]] that receives it"},
    EndpointParameter{.name = "header",
                      .type = "string",
                      .text = "A header field of the request, \"Name: value\"",
                      .repeated = true},
    EndpointParameter{"format", "string", "The form of the response", "json text"}};
constexpr std::array kTop = {
    EndpointParameter{"count", "integer", "Names of each kind, at most 64; 10 if it is left out"}};
constexpr std::array kConfig = {EndpointParameter{
    "key", "string", "A key as cache.memory, a section as cache; all if it is left out"}};
constexpr std::array kLog = {
    EndpointParameter{"from", "integer",
                      "The number of the first record, `next` of the response before; the next one "
                      "if it is left out"}};
constexpr std::array kPurge = {
    EndpointParameter{.name = "url",
                      .type = "string",
                      .text = "Purge this URL, with all its variants",
                      .example = "http://site.example/",
                      .repeated = true},
    EndpointParameter{
        .name = "prefix", .type = "string", .text = "Purge URLs that begin so", .repeated = true},
    EndpointParameter{
        .name = "tag", .type = "string", .text = "Purge responses with this tag", .repeated = true},
    EndpointParameter{"all", "boolean", "Purge everything"},
    EndpointParameter{"soft", "boolean", "Make responses stale instead of removing them"},
    EndpointParameter{"dry_run", "boolean", "Count, and change nothing"},
    EndpointParameter{"token", "string", "That of the dry run: purge only what was counted"}};
constexpr std::array kClear = {
    EndpointParameter{"client", "string", "Only refusals of this client address"},
    EndpointParameter{"host", "string", "Only refusals for this host"}};

using enum EndpointAccess;
using Id = EndpointId;

constexpr std::array kEndpoints = {
    Endpoint{Id::kLivePage, "GET", "/", kReader, "The live page", kHtml, "403"},
    Endpoint{Id::kHealth, "GET", "/healthz", kEverybody, "The process runs", kText, ""},
    Endpoint{Id::kReady, "GET", "/readyz", kEverybody,
             "It takes requests; 503 while it drains, or purges are later than fleet.late", kText,
             "503"},
    Endpoint{Id::kMetrics, "GET", "/metrics", kReader, "All metrics, for Prometheus",
             "text/plain; version=0.0.4; charset=utf-8", "403"},
    Endpoint{Id::kStats, "GET", "/api/stats", kReader, "All counters", kJson, "403"},
    Endpoint{Id::kStatus, "GET", "/api/status", kReader, "The state of the process", kText, "403",
             kFormat},
    Endpoint{Id::kLive, "GET", "/api/live", kReader, "Numbers of the live page", kJson, "400 403",
             kSince},
    Endpoint{Id::kHistory, "GET", "/api/history", kReader,
             "Counters of each second of the last hour, and each minute of the last day", kJson,
             "400 403", kSince},
    Endpoint{Id::kOutcome, "GET", "/api/outcome", kReader,
             "Reasons and latest requests of an outcome", kJson, "400 403", kOutcome},
    Endpoint{Id::kExplain, "GET", "/api/explain", kReader, "The handling of a request", kJson,
             "400 403", kExplain},
    Endpoint{Id::kExplainPage, "GET", "/explain", kReader, "The same as a page", kHtml, "400 403",
             std::span(kExplain).first<5>()},
    Endpoint{Id::kRejected, "GET", "/api/intercept", kReader,
             "Clients that refused the certificate of [intercept]", kJson, "403 404", kFormat},
    Endpoint{Id::kShadow, "GET", "/api/shadow", kReader, "Results of shadow policies", kJson,
             "403"},
    Endpoint{Id::kShadowPage, "GET", "/shadow", kReader, "The same as a page", kHtml, "403"},
    Endpoint{Id::kFleet, "GET", "/fleet", kReader, "Nodes of the fleet, and the lag of purges",
             kJson, "403 404"},
    Endpoint{Id::kTop, "GET", "/api/top", kOperator,
             "Rates of the last ten seconds, hosts and clients of the last two minutes", kJson,
             "400 401 403", kTop},
    Endpoint{Id::kConfig, "GET", "/api/config", kOperator, "The configuration in force", kJson,
             "400 401 403", kConfig},
    Endpoint{Id::kLog, "GET", "/api/log", kOperator,
             "Records of requests; waits up to ten seconds for the next one", kJson,
             "400 401 403 503", kLog},
    Endpoint{Id::kOpenApi, "GET", "/api/openapi.json", kReader, "This description", kJson, "403"},
    Endpoint{Id::kPublished, "GET", "/filters/{file}", kReader,
             "Filters that are published, where [filters] publishes any", kAny,
             "304 403 404 406 416"},
    Endpoint{Id::kPurge, "POST", "/purge", kOperator, "Purge stored responses", kJson,
             "400 401 403 409 413 500 503", kPurge},
    Endpoint{Id::kClear, "POST", "/intercept/clear", kOperator,
             "Clear refusals, so that the hosts are decrypted again", kJson, "400 401 403", kClear},
    Endpoint{Id::kReload, "POST", "/reload", kOperator,
             "Reload the configuration; 409 with the reason if it is refused", kJson,
             "401 403 409"},
    Endpoint{Id::kUpgrade, "POST", "/upgrade", kOperator,
             "Replace the process by a new one; 409 with the reason if this one continues", kJson,
             "401 403 409"},
    Endpoint{Id::kDrain, "POST", "/drain", kOperator,
             "Finish the requests in progress, and end the process", kJson, "401 403"},
    Endpoint{Id::kMemory, "GET", "/filter", kToken, "The memory of admission", kBytes,
             "401 403 404 503"},
    Endpoint{Id::kAdopt, "POST", "/filter/adopt", kToken, "Adopt the memory of another node", kJson,
             "400 401 403 409 413 503"},
};

}  // namespace

std::span<const Endpoint> endpoints() { return kEndpoints; }

const Endpoint* find_endpoint(std::string_view path) {
  const auto* const found = std::ranges::find(kEndpoints, path, &Endpoint::path);
  return found == kEndpoints.end() ? nullptr : found;
}

}  // namespace encore::server
