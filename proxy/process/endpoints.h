// The endpoints of the admin listener: one table, from which requests are dispatched, and the
// description at /api/openapi.json is written. Constant data, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace encore::server {

enum class EndpointId : std::uint8_t {
  kLivePage,
  kHealth,
  kReady,
  kMetrics,
  kStats,
  kStatus,
  kLive,
  kHistory,
  kOutcome,
  kExplain,
  kExplainPage,
  kRejected,
  kShadow,
  kShadowPage,
  kFleet,
  kTop,
  kConfig,
  kLog,
  kOpenApi,
  kPublished,
  kPurge,
  kClear,
  kReload,
  kUpgrade,
  kDrain,
  kMemory,
  kAdopt,
};

enum class EndpointAccess : std::uint8_t {
  kEverybody,  // clients that can connect
  kReader,     // admin.allow_clients, by a name of the listener
  kOperator,   // the same; away from loopback with the token
  kToken,      // with the token only
};

// A parameter of the query.
struct EndpointParameter {
  std::string_view name;
  std::string_view type;  // JSON's: "string", "integer", "boolean"
  std::string_view text;
  std::string_view choices = {};  // separated by spaces; empty: any value
  std::string_view example = {};  // empty: it can be left out of an example
  bool required = false;
  bool repeated = false;
};

struct Endpoint {
  EndpointId id;
  std::string_view method;  // GET stands for HEAD as well, but for /filter
  std::string_view path;    // "{file}" stands for the rest
  EndpointAccess access;
  std::string_view summary;
  std::string_view content_type;  // with status 200
  std::string_view statuses;      // other ones than 200, separated by spaces
  std::span<const EndpointParameter> parameters = {};
};

std::span<const Endpoint> endpoints();
// The endpoint of a path; null: there is none.
const Endpoint* find_endpoint(std::string_view path);

// The description of all endpoints by OpenAPI 3.1, a JSON document.
const std::string& openapi_json();

}  // namespace encore::server
