#include "proxy/observe/top.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace encore::server {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json or_null(const std::optional<Quantiles>& value) {
  if (!value) return nullptr;
  return {{"p50", value->p50}, {"p90", value->p90}, {"p99", value->p99}};
}

Json rates_json(const RecentRates& rates) {
  Json requests = Json::object();
  for (std::size_t i = 0; i < kOutcomeClassCount; ++i) {
    requests[std::string(kOutcomeClassNames[i])] = rates.requests[i];
  }
  return {{"seconds", rates.seconds},
          {"requests_per_second", requests},
          {"bytes_to_clients_per_second", rates.bytes_to_clients},
          {"object_hit_ratio", or_null(rates.object_hit_ratio)},
          {"byte_hit_ratio", or_null(rates.byte_hit_ratio)},
          {"latency_seconds", {{"hit", or_null(rates.hit)}, {"miss", or_null(rates.miss)}}}};
}

Json names_json(const HeavyHitters& names, std::string_view weight, std::size_t count) {
  Json out = Json::array();
  for (const HeavyHitters::Item& item : names.top(count)) {
    out.push_back({{"name", item.name}, {weight, item.weight}, {"error", item.error}});
  }
  return out;
}

}  // namespace

std::string top_json(const TopReport& top, const LiveStatus& live, const Snapshot& snapshot,
                     const ProcessStatus& process, std::size_t count) {
  const Json out = {
      {"name", live.name},
      {"version", ENCORE_VERSION},
      {"state", live.ready ? "ready" : "draining"},
      {"now_ms", live.now_ms},
      {"uptime_seconds", std::chrono::duration<double>(process.uptime).count()},
      {"rates", rates_json(top.rates)},
      {"connections",
       {{"clients", snapshot.connections_open}, {"origins", snapshot.origin_connections}}},
      {"cache",
       {{"objects", snapshot.kernel.objects},
        {"used_bytes", snapshot.kernel.used_bytes},
        {"capacity_bytes", snapshot.kernel.capacity_bytes}}},
      {"names_seconds", std::chrono::duration<double>(top.covered).count()},
      {"hosts_by_requests", names_json(top.names.host_requests, "requests", count)},
      {"hosts_by_bytes", names_json(top.names.host_bytes, "bytes", count)},
      {"clients_by_requests", names_json(top.names.client_requests, "requests", count)},
      {"clients_by_bytes", names_json(top.names.client_bytes, "bytes", count)}};
  // Text that peers have sent need not be UTF-8.
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace encore::server
