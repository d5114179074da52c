#include "proxy/observe/live.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace encore::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kHostsShown = 10;

std::int64_t milliseconds(WallTime time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// Text that peers have sent need not be UTF-8.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json limits_json(const std::vector<LimitReport>& limits) {
  Json out = Json::array();
  for (const LimitReport& limit : limits) {
    out.push_back({{"name", limit.name},
                   {"unit", limit.is_bytes ? "bytes" : ""},
                   {"current", limit.current},
                   {"peak", limit.peak},
                   {"limit", limit.limit == 0 ? Json(nullptr) : Json(limit.limit)},
                   {"refused", limit.refused ? Json(*limit.refused) : Json(nullptr)}});
  }
  return out;
}

Json hosts_json(const HeavyHitters& hosts) {
  Json out = Json::array();
  for (const HeavyHitters::Item& item : hosts.top(kHostsShown)) {
    out.push_back({{"host", item.name}, {"weight", item.weight}, {"error", item.error}});
  }
  return out;
}

template <std::size_t kBuckets>
Json powers_json(const PowersOfTwo<kBuckets>& counted) {
  // Up to the last that is not empty.
  std::size_t used = kBuckets;
  while (used != 0 && counted.buckets[used - 1] == 0) --used;
  Json buckets = Json::array();
  for (std::size_t i = 0; i < used; ++i) buckets.push_back(counted.buckets[i]);
  return {{"count", counted.count},
          {"p50", counted.quantile(0.5)},
          {"p90", counted.quantile(0.9)},
          {"buckets", buckets}};
}

}  // namespace

std::string live_json(const LiveStatus& live, const Snapshot& snapshot,
                      const ProcessStatus& process, const History& history, std::int64_t since_ms) {
  Json reload = nullptr;
  if (live.last_reload) {
    reload = {{"when_ms", milliseconds(live.last_reload->when)},
              {"fault", live.last_reload->fault}};
  }
  const Json out = {
      {"name", live.name},
      {"state", live.ready ? "ready" : "draining"},
      {"now_ms", live.now_ms},
      {"token_needed", live.token_needed},
      {"last_reload", reload},
      {"warnings", live.warnings},
      {"limits", limits_json(live.limits)},
      {"hosts_by_bytes", hosts_json(live.hosts_by_bytes)},
      {"hosts_by_hits", hosts_json(live.hosts_by_hits)},
      {"hit_sample", RecentRequests::kHitSample},
      {"evicted_ages", powers_json(snapshot.evicted_ages)},
      {"stored_sizes", powers_json(snapshot.stored_sizes)},
      {"rotate_after_seconds", std::chrono::duration<double>(live.rotate_after).count()}};
  return fmt::format("{{\"process\":{},\"stats\":{},\"history\":{}}}\n", dump(out),
                     stats_json(snapshot, process), history.json(since_ms));
}

std::string outcome_json(Outcome outcome, std::uint64_t requests, const OutcomeReport& report) {
  Json reasons = Json::array();
  for (const OutcomeReport::Reason& reason : report.reasons) {
    reasons.push_back({{"reason", reason.name}, {"count", reason.count}});
  }
  Json latest = Json::array();
  for (const RecentRequest& request : report.latest) {
    latest.push_back({{"when_ms", milliseconds(request.when)},
                      {"method", request.method},
                      {"url", request.url},
                      {"status", request.status},
                      {"reason", request.reason}});
  }
  return dump({{"outcome", to_string(outcome)},
               {"requests", requests},
               {"sampled", outcome == Outcome::kHit},
               {"reasons", reasons},
               {"latest", latest}}) +
         "\n";
}

}  // namespace encore::server
