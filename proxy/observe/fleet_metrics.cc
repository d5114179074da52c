#include "proxy/observe/fleet_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "proxy/observe/access_text.h"

namespace encore::server {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json null_or(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string_view state_of(const FleetFilter& filter) {
  switch (filter.state) {
    case FleetFilter::State::kOff:
      return "off";
    case FleetFilter::State::kOwn:
      return "own";
    case FleetFilter::State::kWanted:
      return "wanted";
    case FleetFilter::State::kAdopted:
      return "adopted";
    case FleetFilter::State::kNone:
      return "none";
  }
  return "off";
}

Json filter_json(const FleetFilter& filter) {
  Json out = {{"state", state_of(filter)}, {"given", filter.given}};
  if (filter.state == FleetFilter::State::kNone) out["note"] = filter.note;
  if (filter.state != FleetFilter::State::kAdopted) return out;
  std::string time;
  append_iso_time(time, filter.adopted);
  out["from"] = filter.from;
  out["adopted"] = time;
  out["seconds"] = filter.seconds;
  out["insertions"] = filter.insertions;
  return out;
}

void write_filter(MetricsWriter& out, const FleetFilter& filter) {
  out.one("fleet_filters_given_total", "counter",
          "Times that another node got the admission filter of this one.", filter.given);
  constexpr std::string_view kAdopted = "fleet_filter_adopted_timestamp_seconds";
  out.family(kAdopted, "gauge", "Time of adoption of the filter of this node; 0: never.");
  const bool has_one = filter.state == FleetFilter::State::kAdopted;
  const auto time = std::chrono::floor<std::chrono::seconds>(filter.adopted.time_since_epoch());
  out.sample(kAdopted, fmt::format("from=\"{}\"", filter.from), has_one ? time.count() : 0);
}

}  // namespace

void write_fleet(MetricsWriter& out, const FleetReport& fleet) {
  out.one("fleet_engine_connected", "gauge", "1: purges can be read from the engine and published.",
          fleet.connected ? 1 : 0);
  out.one("fleet_lag_seconds", "gauge",
          "Time since all purges of the fleet were applied here, and all of this node published.",
          fleet.lag_seconds);
  out.one("fleet_late", "gauge", "1: purges are late.", fleet.is_late ? 1 : 0);
  out.one("fleet_purges_pending", "gauge", "Purges of this node that wait for the engine.",
          fleet.pending);
  out.one("fleet_purges_published_total", "counter", "Purges of this node in the engine.",
          fleet.published);
  out.one("fleet_purges_applied_total", "counter", "Purges of other nodes applied here.",
          fleet.applied);
  out.one("fleet_entries_refused_total", "counter", "Entries of the stream that are no purges.",
          fleet.refused);
  out.one("fleet_purges_unconfirmed_total", "counter",
          "Purges that a node did not confirm within fleet.wait.", fleet.unconfirmed);
  out.one("fleet_queue_overflows_total", "counter",
          "Times that too many purges waited, so that other nodes purge everything.",
          fleet.overflows);
  out.one("fleet_gaps_total", "counter",
          "Times that purges may have been missed, so that all objects became stale.", fleet.gaps);
  out.one("fleet_nodes", "gauge", "Nodes of the fleet that are present, this one included.",
          std::ranges::count_if(fleet.nodes, &FleetNode::is_present));
  write_filter(out, fleet.filter);
}

std::string lateness(const FleetReport& fleet) {
  if (!fleet.is_late) return {};
  return fmt::format("purges are late: {:.0f} s{}", fleet.lag_seconds,
                     fleet.fault.empty() ? "" : " (" + fleet.fault + ")");
}

std::string namesake_text(std::string_view node) {
  return fmt::format("another process is node \"{}\" as well; set fleet.node to a unique name",
                     node);
}

std::string fleet_json(const FleetReport& fleet) {
  Json nodes = Json::array();
  for (const FleetNode& each : fleet.nodes) {
    nodes.push_back({{"node", each.name},
                     {"here", each.is_here},
                     {"present", each.is_present},
                     {"version", each.version},
                     {"config", each.config},
                     {"hit_ratio", null_or(each.hit_ratio)},
                     {"lag_seconds", each.lag_seconds},
                     {"filter_fill", null_or(each.fill)},
                     {"seen_seconds", each.seen_seconds}});
  }
  Json warnings = Json::array();
  const auto here = std::ranges::find(fleet.nodes, true, &FleetNode::is_here);
  if (fleet.has_namesake && here != fleet.nodes.end()) {
    warnings.push_back(namesake_text(here->name));
  }
  const Json out = {{"engine",
                     {{"url", fleet.engine},
                      {"connected", fleet.connected},
                      {"fault", fleet.fault},
                      {"late", fleet.is_late},
                      {"lag_seconds", fleet.lag_seconds}}},
                    {"purges",
                     {{"pending", fleet.pending},
                      {"published", fleet.published},
                      {"applied", fleet.applied},
                      {"refused", fleet.refused},
                      {"unconfirmed", fleet.unconfirmed},
                      {"overflows", fleet.overflows},
                      {"gaps", fleet.gaps}}},
                    {"warnings", warnings},
                    {"filter", filter_json(fleet.filter)},
                    {"nodes", nodes}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace encore::server
